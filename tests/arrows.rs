//! Guards the arrows of docs/architecture.md: which crate of the workspace imports which.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

#[test]
fn crates_import_only_along_the_arrows() {
    let allowed = BTreeMap::from([
        ("coracle-store", vec![]),
        ("coracle-api", vec![]),
        ("coracle-streams", vec!["coracle-api"]),
        (
            "coracle-apiserver",
            vec!["coracle-api", "coracle-store", "coracle-streams"],
        ),
        ("coracle-client", vec!["coracle-api"]),
        ("coracle-controllers", vec!["coracle-api", "coracle-client"]),
        ("coracle-scheduler", vec!["coracle-api", "coracle-client"]),
        (
            "coracle-agent",
            vec!["coracle-api", "coracle-client", "coracle-streams"],
        ),
        ("coracle-bench", vec!["coracle-client"]),
    ]);
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert_eq!(
        packages.len(),
        allowed.len() + 1,
        "a crate is missing from the arrows"
    );
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let Some(may) = allowed.get(name) else {
            assert_eq!(name, "coracle", "a crate is missing from the arrows");
            continue;
        };
        let imports: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|dependency| dependency.starts_with("coracle"))
            .collect();
        let extra: Vec<_> = imports
            .iter()
            .filter(|import| !may.contains(import))
            .collect();
        assert!(
            extra.is_empty(),
            "{name} imports {extra:?}, which no arrow allows"
        );
    }
}
