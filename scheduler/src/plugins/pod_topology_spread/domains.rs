//! Which nodes and pods count for a constraint.

use crate::node_info::NodeInfo;
use crate::plugins::node_selector::required_matches;
use crate::plugins::taint_toleration::tolerates_hard_taints;
use crate::pod_info::{PodInfo, SpreadConstraint};
use crate::selector;

pub fn has_all_keys(node: &NodeInfo, constraints: &[SpreadConstraint]) -> bool {
    let mut keys = constraints.iter().map(|one| &one.topology_key);
    keys.all(|key| node.label(key).is_some())
}

/// Whether pods on this node count.
pub fn is_counted(constraint: &SpreadConstraint, pod: &PodInfo, node: &NodeInfo) -> bool {
    (!constraint.honors_affinity || required_matches(pod, node))
        && (!constraint.honors_taints || tolerates_hard_taints(pod, node.taints()))
}

/// An empty selector counts nobody, as upstream has it, and pods on their way out do not count.
pub fn counts(constraint: &SpreadConstraint, pod: &PodInfo, other: &PodInfo) -> bool {
    !constraint.selector.is_empty()
        && !other.is_deleting()
        && other.key.namespace == pod.key.namespace
        && selector::matches(&constraint.selector, other.labels())
}

pub fn count(constraint: &SpreadConstraint, pod: &PodInfo, node: &NodeInfo) -> i64 {
    let counted = node.pods.iter();
    let counted = counted
        .filter(|other| counts(constraint, pod, other))
        .count();
    i64::try_from(counted).unwrap_or(i64::MAX)
}
