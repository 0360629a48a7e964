use super::super::fixtures::{cidr, ip};
use super::Node;
use serde_json::{Value, json};

fn node(object: Value) -> Node {
    Node::of(&serde_json::from_value(object).unwrap())
}

#[test]
fn what_a_node_says_of_itself() {
    let found = node(json!({
        "metadata": { "name": "here", "labels": { "topology.kubernetes.io/zone": "east" } },
        "spec": { "podCIDR": "10.42.0.0/24", "podCIDRs": ["10.42.0.0/24", "fd42::/64", "x"] },
        "status": { "addresses": [
            { "type": "Hostname", "address": "here" },
            { "type": "InternalIP", "address": "192.168.1.10" },
            { "type": "ExternalIP", "address": "1.2.3.4" },
        ] },
    }));
    assert_eq!(found, super::super::fixtures::node());
    assert_eq!(found.pod_cidrs, [cidr("10.42.0.0/24"), cidr("fd42::/64")]);
    assert_eq!(found.addresses, [ip("192.168.1.10")]);
}

#[test]
fn a_node_that_goes_is_not_to_be_sent_to() {
    assert!(!node(json!({ "metadata": { "name": "here" } })).is_leaving);
    let taints = json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]);
    assert!(
        node(json!({ "metadata": { "name": "here" }, "spec": { "taints": taints } })).is_leaving
    );
    let at = "2026-01-01T00:00:00Z";
    assert!(node(json!({ "metadata": { "name": "here", "deletionTimestamp": at } })).is_leaving);
    let unknown = Node::unknown("here", Some("10.42.0.0/24"));
    assert!(unknown.is_leaving && unknown.pod_cidrs == [cidr("10.42.0.0/24")]);
    assert!(
        Node::unknown("here", Some("10.42.0.0"))
            .pod_cidrs
            .is_empty()
    );
}
