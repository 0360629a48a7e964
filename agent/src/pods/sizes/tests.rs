//! What pods were given, what they take of a node, and what is kept of both.

use super::{Amounts, Kept, Sizes, given, requests, same};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}})
}

fn one(cpu: &str) -> Pod {
    pod(json!({"containers": [container("a", cpu, "1Mi"), container("b", "1", "1Mi")]}))
}

#[test]
fn a_pod_takes_the_most_that_it_requests_at_a_time() {
    let mut sidecar = container("s", "100m", "10Mi");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "initContainers": [container("i", "2", "1Mi"), sidecar, container("j", "2", "5Mi")],
        "containers": [container("a", "500m", "20Mi"), container("b", "0.5", "0")],
        "overhead": {"cpu": "5m"},
    });
    let expected = Amounts {
        cpu_milli: 2105,
        memory_bytes: 30 << 20,
    };
    assert_eq!(requests(&pod(spec.clone())), expected);
    let mut whole = spec;
    whole["resources"] = json!({"requests": {"cpu": "3"}});
    assert_eq!(requests(&pod(whole)).cpu_milli, 3005);
}

#[test]
fn what_was_given_stands_in_for_what_is_asked() {
    let sizes = Sizes::of(&one("100m"));
    assert!(sizes.fits(&one("0.1")));
    assert!(!sizes.fits(&one("200m")));
    let shown = sizes.applied_to(&one("200m"));
    assert!(sizes.fits(&shown));
}

#[test]
fn who_is_behind_is_known_until_it_is_not() {
    let mut kept = Kept {
        allocated: Sizes::of(&one("100m")),
        ..Kept::default()
    };
    let old = kept.allocated.containers["a"].clone();
    kept.allocate(&one("200m"));
    assert_eq!(kept.behind.keys().collect::<Vec<_>>(), ["a"]);
    // What it has stays the same while the wish goes on.
    kept.allocate(&one("300m"));
    assert!(same(&kept.behind["a"], &old));
    let directory = tempfile::tempdir().unwrap();
    kept.save(directory.path()).unwrap();
    assert_eq!(Kept::load(directory.path()), Some(kept.clone()));
    let now = kept.allocated.containers["a"].clone();
    kept.has("a", &now);
    assert!(kept.behind.is_empty());
    // Back to where it was, before anything was done.
    kept.allocate(&one("100m"));
    kept.allocate(&one("300m"));
    assert!(kept.behind.is_empty());
}

#[test]
fn nothing_is_kept_of_a_pod_without_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let kept = Kept {
        allocated: Sizes::of(&pod(json!({"containers": [{"name": "a"}]}))),
        ..Kept::default()
    };
    kept.save(directory.path()).unwrap();
    assert_eq!(Kept::load(directory.path()), None);
}

#[test]
fn a_pod_that_waits_has_what_is_kept_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let cpu = |wanted: &str| given(directory.path(), &one(wanted)).cpu_milli;
    assert_eq!(cpu("300m"), 1300);
    let kept = Kept {
        allocated: Sizes::of(&one("100m")),
        ..Kept::default()
    };
    kept.save(directory.path()).unwrap();
    assert_eq!(cpu("300m"), 1100);
    std::fs::write(directory.path().join("sizes.json"), "{").unwrap();
    assert_eq!(cpu("300m"), 1300);
}
