//! What this loop reads off a node. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};

use crate::nodes;

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(super) const NO_EXECUTE: &str = "NoExecute";
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
const ZONE_LABELS: [&str; 2] = [
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
];
const REGION_LABELS: [&str; 2] = [
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/region",
];

/// The status of the Ready condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    NotReady,
    Unknown,
    /// There is no such condition.
    Unreported,
}

pub(super) fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

pub(super) fn readiness(node: &Node) -> Readiness {
    match nodes::ready(node).map(|ready| ready.status.as_str()) {
        None => Readiness::Unreported,
        Some("True") => Readiness::Ready,
        Some("False") => Readiness::NotReady,
        Some(_) => Readiness::Unknown,
    }
}

/// What the node says about when it last reported; good for comparing with itself alone.
pub(super) fn heartbeat(node: &Node) -> Option<Timestamp> {
    nodes::ready(node)?
        .last_heartbeat_time
        .as_ref()
        .map(|time| time.0)
}

/// Has one of the taints by which this loop moves pods away.
pub(super) fn is_evicting(node: &Node) -> bool {
    taints(node)
        .iter()
        .any(|taint| taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&&*taint.key))
}

/// Does not count when a zone's health is judged.
pub(super) fn is_excluded(node: &Node) -> bool {
    label(node, &[EXCLUDED]).is_some()
}

/// Region and zone; empty for a node that names neither.
pub(super) fn zone(node: &Node) -> String {
    let region = label(node, &REGION_LABELS).unwrap_or_default();
    let zone = label(node, &ZONE_LABELS).unwrap_or_default();
    if region.is_empty() && zone.is_empty() {
        return String::new();
    }
    format!("{region}:{zone}")
}

fn label<'a>(node: &'a Node, keys: &[&str]) -> Option<&'a str> {
    let labels = node.metadata.labels.as_ref()?;
    keys.iter()
        .find_map(|key| labels.get(*key))
        .map(String::as_str)
}
