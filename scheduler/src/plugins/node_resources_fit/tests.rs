//! Every lack of a node is told.

use super::*;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::sync::Arc;

fn pod(requests: serde_json::Value) -> PodInfo {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p", "uid": "u" },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": requests } }] },
    }))
    .unwrap();
    PodInfo::new(Arc::new(pod))
}

fn node(allocatable: serde_json::Value) -> Arc<Node> {
    Arc::new(
        serde_json::from_value(json!({
            "metadata": { "name": "n" }, "status": { "allocatable": allocatable },
        }))
        .unwrap(),
    )
}

fn reasons(requests: serde_json::Value, allocatable: serde_json::Value) -> Vec<String> {
    let mut info = NodeInfo::new("n");
    info.set_node(node(allocatable));
    let pod = pod(requests);
    let mut texts = Vec::new();
    if let Verdict::Unschedulable(reason) = NodeResourcesFit.filter(&pod, &info, &Slot::default()) {
        reason.each(&pod, |text| texts.push(text));
    }
    texts
}

#[test]
fn every_lack_is_told() {
    let small = json!({ "cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "0" });
    let asked = json!({
        "cpu": "2", "memory": "2Gi", "ephemeral-storage": "2Gi", "example.com/b": "1",
        "example.com/a": "0",
    });
    assert_eq!(
        reasons(asked, small),
        [
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            "Insufficient ephemeral-storage",
            "Insufficient example.com/b",
        ]
    );
}

#[test]
fn exactly_enough_fits() {
    let node = json!({ "cpu": "2", "memory": "2Gi", "example.com/a": "3", "pods": "1" });
    assert!(
        reasons(
            json!({ "cpu": "2", "memory": "2Gi", "example.com/a": "3" }),
            node
        )
        .is_empty()
    );
}

#[test]
fn a_node_too_small_when_empty_does_not_wake_a_pod() {
    let asks = pod(json!({ "cpu": "4" }));
    let small = WorldChange::NodeAdded(node(json!({ "cpu": "2" })));
    let large = WorldChange::NodeAdded(node(json!({ "cpu": "8" })));
    assert!(!NodeResourcesFit.can_help(&small, &asks));
    assert!(NodeResourcesFit.can_help(&large, &asks));
}

#[test]
fn a_pod_that_asks_for_less_than_before_wakes_others() {
    let asks = pod(json!({ "cpu": "4" }));
    let update = |old, new| WorldChange::PodUpdated {
        old: Arc::new(pod(json!({ "cpu": old }))),
        new: Arc::new(pod(json!({ "cpu": new }))),
    };
    assert!(NodeResourcesFit.can_help(&update("2", "1"), &asks));
    assert!(!NodeResourcesFit.can_help(&update("1", "2"), &asks));
}
