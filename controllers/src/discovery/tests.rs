//! Which resources are walked, from what a server says it serves.

use super::*;
use serde_json::json;

fn add(discovered: &mut Discovered, seen: &mut HashSet<(String, String)>, version: &str) {
    let list = json!({"groupVersion": version, "resources": [
        {"name": "things", "singularName": "thing", "kind": "Thing", "namespaced": true,
         "verbs": ["list"]},
        {"name": "things/status", "singularName": "", "kind": "Thing", "namespaced": true,
         "verbs": ["get"]},
    ]});
    discovered.add(&serde_json::from_value(list).unwrap(), seen);
}

#[test]
fn a_resource_counts_once_and_its_kind_in_every_version() {
    let (mut discovered, mut seen) = (Discovered::default(), HashSet::new());
    for version in ["x.io/v2", "x.io/v1", "y.io/v1", "not/a/version"] {
        add(&mut discovered, &mut seen, version);
    }
    let resources = discovered.resources.iter().map(Resource::text);
    assert_eq!(
        resources.collect::<Vec<_>>(),
        ["x.io/v2, Resource=things", "y.io/v1, Resource=things"]
    );
    let older = discovered.kind("x.io/v1", "Thing").unwrap();
    assert_eq!(older.api.version, "v1");
    assert!(older.supports("list") && !older.supports("delete"));
    assert_eq!(discovered.kind("x.io/v3", "Thing"), None);
    assert_eq!(discovered.malformed, ["not/a/version"]);
}

#[test]
fn failures_are_told_as_upstream_tells_them() {
    let mut discovered = Discovered::default();
    assert_eq!(discovered.failure_text(), None);
    let why = "the server is currently unable to handle the request".to_owned();
    discovered.failures.insert("metrics.k8s.io/v1".into(), why);
    assert_eq!(
        discovered.failure_text().unwrap(),
        "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1: \
         the server is currently unable to handle the request"
    );
}

#[test]
fn the_preferred_version_comes_first() {
    let version = |name: &str| json!({"groupVersion": name, "version": name});
    let group = json!({"name": "x.io", "preferredVersion": version("x.io/v1"),
        "versions": [version("x.io/v2"), version("x.io/v1"), version("x.io/v1beta1")]});
    let group: APIGroup = serde_json::from_value(group).unwrap();
    let versions: Vec<_> = versions_of(&group).collect();
    assert_eq!(versions, ["x.io/v1", "x.io/v2", "x.io/v1beta1"]);
}
