//! Nodes that take traffic from load balancers, and their addresses. Pure.

use crate::nodes;
use k8s_openapi::api::core::v1::Node;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Nodes with it get no traffic from load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// A taint of those that the cluster autoscaler is about to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    pub name: String,
    /// None that a node before it has.
    pub addresses: Vec<IpAddr>,
}

/// Those that take traffic, in the order of the nodes.
pub fn places(nodes: &[Arc<Node>]) -> Vec<Place> {
    let all = nodes.iter().filter(|node| takes_traffic(node));
    let mut seen = BTreeSet::new();
    all.map(|node| Place {
        name: node.metadata.name.clone().unwrap_or_default(),
        addresses: addresses(node)
            .into_iter()
            .filter(|address| seen.insert(*address))
            .collect(),
    })
    .collect()
}

/// It is ready, stays, and nobody keeps traffic from it.
fn takes_traffic(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let is_excluded = labels.is_some_and(|labels| labels.contains_key(EXCLUDED));
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let goes = taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == TO_BE_DELETED));
    let stays = node.metadata.deletion_timestamp.is_none() && !goes;
    nodes::is_ready(node) && !is_excluded && stays
}

/// Those that are known outside, or else those within.
fn addresses(node: &Node) -> Vec<IpAddr> {
    let status = node.status.as_ref();
    let all = status.and_then(|status| status.addresses.as_ref());
    let of = |kind: &str| -> Vec<IpAddr> {
        let all = all.into_iter().flatten();
        let all = all.filter(|address| address.type_ == kind);
        all.filter_map(|address| address.address.parse().ok())
            .collect()
    };
    let outside = of("ExternalIP");
    if outside.is_empty() {
        of("InternalIP")
    } else {
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::{EXCLUDED, TO_BE_DELETED, takes_traffic};
    use k8s_openapi::api::core::v1::Node;
    use serde_json::{Value, json};

    fn node(ready: &str, metadata: Value, taint: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": metadata,
            "spec": { "taints": [{ "key": taint, "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    #[test]
    fn traffic_goes_to_nodes_that_are_ready_and_stay() {
        assert!(takes_traffic(&node("True", json!({}), "dedicated")));
        assert!(!takes_traffic(&node("False", json!({}), "dedicated")));
        assert!(!takes_traffic(&node("True", json!({}), TO_BE_DELETED)));
        let excluded = json!({ "labels": { EXCLUDED: "" } });
        assert!(!takes_traffic(&node("True", excluded, "dedicated")));
        let going = json!({ "deletionTimestamp": "2026-06-01T00:00:00Z" });
        assert!(!takes_traffic(&node("True", going, "dedicated")));
    }
}
