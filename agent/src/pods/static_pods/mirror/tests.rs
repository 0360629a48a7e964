//! What becomes of mirrors.

use super::{Act, decide, image, shows};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::sync::Arc;

fn pod(hash: &str) -> Arc<Pod> {
    let annotations = json!({ "kubernetes.io/config.hash": hash });
    let meta = json!({ "name": "web-n", "uid": hash, "annotations": annotations });
    Arc::new(serde_json::from_value(json!({ "metadata": meta })).unwrap())
}

fn node() -> Node {
    serde_json::from_value(json!({ "metadata": { "name": "n", "uid": "nu" } })).unwrap()
}

#[test]
fn each_static_pod_has_the_one_that_shows_it() {
    let (one, other) = (pod("1"), pod("2"));
    let mirror = Arc::new(image(&one, &node()));
    assert!(shows(&mirror, &one) && !shows(&mirror, &other));
    assert_eq!(
        decide(Some(&one), None, true),
        Some(Act::Create(one.clone()))
    );
    assert_eq!(decide(Some(&one), Some(&mirror), true), None);
    assert_eq!(
        decide(Some(&other), Some(&mirror), true),
        Some(Act::Delete(mirror.clone()))
    );
    assert_eq!(
        decide(None, Some(&mirror), false),
        Some(Act::Delete(mirror.clone()))
    );
    // It shows the end of a pod to the last.
    assert_eq!(decide(None, Some(&mirror), true), None);
    let mut deleted = mirror.as_ref().clone();
    deleted.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    let deleted = Arc::new(deleted);
    assert_eq!(
        decide(Some(&one), Some(&deleted), true),
        Some(Act::Delete(deleted.clone()))
    );
}

#[test]
fn a_mirror_belongs_to_the_node() {
    let mirror = image(&pod("1"), &node());
    let owners = mirror.metadata.owner_references.unwrap();
    assert_eq!(
        (owners[0].name.as_str(), owners[0].uid.as_str()),
        ("n", "nu")
    );
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(mirror.metadata.uid, None);
}
