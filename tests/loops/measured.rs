//! The bench on a server of ours: that every suite does its work and takes it away, not how fast.

use crate::site::Site;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams};
use serde_json::Value;
use std::path::Path;

const SUITES: [(&str, &[&str]); 4] = [
    (
        "writes",
        &[
            "create, 1000 B, 1 connections",
            "patch, 10000 B, 64 connections",
        ],
    ),
    (
        "reads",
        &["get, protobuf, 16 connections", "list of 100, pages of 500"],
    ),
    (
        "fanout",
        &["events to 1 watchers", "events to 100 watchers at 1000/s"],
    ),
    ("nodes", &["heartbeats of 100 nodes"]),
];

/// What the bench writes for machines.
fn bench(directory: &Path, arguments: &[&str]) -> Value {
    let file = directory.join("figures.json");
    let json = format!("--json={}", file.display());
    let all = [&["coracle-bench"], arguments, &[&json]].concat();
    let all: Vec<_> = all.into_iter().map(Into::into).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let done = runtime.block_on(coracle_bench::run(all));
    done.unwrap_or_else(|error| panic!("{arguments:?}: {error:#}"));
    let text = std::fs::read(&file).expect("figures");
    serde_json::from_slice(&text).expect("JSON")
}

/// The value of each side in each round.
fn values<'a>(figures: &'a Value, what: &str) -> Vec<&'a [Value]> {
    let mut rows = figures["rows"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["what"] == what);
    let row = row.unwrap_or_else(|| panic!("no {what:?} in {figures:#}"));
    let sides = row["sides"].as_array().expect("sides").iter();
    let values = sides.map(|side| side["values"].as_array().expect("values"));
    values.map(Vec::as_slice).collect()
}

pub fn run() {
    let site = Site::new(0);
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, site.kubeconfig()).expect("a kubeconfig");
    let kubeconfig = kubeconfig.display().to_string();
    for (suite, all) in SUITES {
        let mut arguments = vec![suite, "--kubeconfig", &kubeconfig, "--quick"];
        arguments.extend(["--count", "20", "--size", "100", "--against", &kubeconfig]);
        let figures = bench(directory.path(), &arguments);
        for work in all {
            let rates = values(&figures, &format!("{work}, rate"));
            assert_eq!(rates.len(), 2, "{rates:?}");
            for side in rates {
                assert!(
                    matches!(side, [one] if one.as_f64() > Some(0.0)),
                    "{side:?}"
                );
            }
            for side in values(&figures, &format!("{work}, failed")) {
                assert_eq!(side, [0.0]);
            }
        }
        let version = figures["run"]["serverVersions"][1].as_str();
        assert!(
            version.is_some_and(|text| text.starts_with("v1.")),
            "{version:?}"
        );
    }
    cost(directory.path(), &kubeconfig);
    let ours = ListParams::default().labels("coracle-bench/run");
    let (maps, nodes): (Api<ConfigMap>, Api<Node>) =
        (Api::all(site.admin.clone()), Api::all(site.admin.clone()));
    let leases: Api<Lease> = Api::namespaced(site.admin.clone(), "kube-node-lease");
    let left = site.block_on(async {
        (
            maps.list(&ours).await.expect("ConfigMaps").items.len(),
            nodes.list(&ours).await.expect("nodes").items.len(),
            leases
                .list(&ListParams::default())
                .await
                .expect("leases")
                .items
                .len(),
        )
    });
    assert_eq!(left, (0, 0, 0));
}

/// What this process costs, which the server is part of.
fn cost(directory: &Path, kubeconfig: &str) {
    let id = std::process::id().to_string();
    let mut arguments = vec!["footprint", "--kubeconfig", kubeconfig, "--processes", &id];
    arguments.extend(["--seconds", "1", "--size", "100", "--quick"]);
    let figures = bench(directory, &arguments);
    for what in [
        "resident, idle",
        "resident, 100 nodes",
        "one more list of 100, at most",
    ] {
        let cost = values(&figures, what)[0];
        assert!(cost[0].as_f64() >= Some(0.0), "{what}: {cost:?}");
    }
    let written = values(&figures, "written, 10 nodes, of 1 s")[0];
    assert!(written[0].as_f64() >= Some(0.0), "{written:?}");
}

/// A server of its own is started, ended and started again on what it left, and on nothing.
pub fn starts() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("server");
    let kubeconfig = data.join("admin.kubeconfig").display().to_string();
    let start = format!(
        "exec {} server --data-dir {} --listen 127.0.0.1:0",
        env!("CARGO_BIN_EXE_coracle"),
        data.display()
    );
    let mut arguments = vec!["coldstart", "--kubeconfig", &kubeconfig, "--start", &start];
    let empty = format!("rm -rf {}", data.display());
    arguments.extend(["--rounds", "2", "--most", "1", "--empty", &empty]);
    let figures = bench(directory.path(), &arguments);
    for what in ["first start, empty", "start with 0 objects"] {
        let took = values(&figures, what);
        let [[one, two]] = took.as_slice() else {
            panic!("{what}: {took:?}");
        };
        assert!(one.as_f64() > Some(0.0) && two.as_f64() > Some(0.0));
    }
    let version = figures["run"]["serverVersions"][0].as_str();
    assert!(version.is_some_and(|text| text.starts_with("v1.")));
}
