//! Which pull secrets are tried for which image.

use super::*;

fn entry(registry: &str) -> RegistryCredentials {
    let text = registry.to_owned();
    RegistryCredentials {
        registry: text.clone(),
        username: text,
        password: "p".into(),
    }
}

fn check(registries: &[&str], image: &str, expected: &[&str]) {
    let entries: Vec<_> = registries.iter().map(|registry| entry(registry)).collect();
    let image = Reference::parse(image).unwrap();
    let names: Vec<String> = fitting(&entries, &image)
        .into_iter()
        .map(|auth| match auth {
            RegistryAuth::Basic(name, _) => name,
            _ => "anonymous".into(),
        })
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn entries_match_by_host_port_and_path() {
    check(
        &["https://index.docker.io/v1/"],
        "busybox",
        &["https://index.docker.io/v1/"],
    );
    check(&["ghcr.io"], "busybox", &["anonymous"]);
    check(
        &["ghcr.io", "ghcr.io/a"],
        "ghcr.io/a/b",
        &["ghcr.io/a", "ghcr.io"],
    );
    check(&["ghcr.io/ab"], "ghcr.io/a/b", &["anonymous"]);
    check(&["*.example.com"], "r.example.com/x", &["*.example.com"]);
    check(&["*.example.com"], "a.r.example.com/x", &["anonymous"]);
    check(&["localhost:5000"], "localhost:5001/x", &["anonymous"]);
    check(
        &["http://localhost:5000/v2/"],
        "localhost:5000/x",
        &["http://localhost:5000/v2/"],
    );
}
