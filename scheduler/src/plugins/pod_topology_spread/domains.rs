//! Which nodes and pods count for a constraint.

use crate::node_info::{Alike, NodeInfo};
use crate::plugins::node_selector::required_matches;
use crate::plugins::taint_toleration::tolerates_hard_taints;
use crate::pod_info::{Memo, PodInfo, SpreadConstraint, Traits};
use crate::selector;

pub fn has_all_keys(node: &NodeInfo, constraints: &[SpreadConstraint]) -> bool {
    let mut keys = constraints.iter().map(|one| &one.topology_key);
    keys.all(|key| node.label(key).is_some())
}

/// Whether pods on this node count.
pub fn is_counted(constraint: &SpreadConstraint, pod: &PodInfo, node: &NodeInfo) -> bool {
    (!constraint.honors_affinity || required_matches(pod, &node.facts))
        && (!constraint.honors_taints || tolerates_hard_taints(pod, node.taints()))
}

/// An empty selector counts nobody, as upstream has it, and pods on their way out do not count.
pub fn counts(constraint: &SpreadConstraint, pod: &PodInfo, other: &PodInfo) -> bool {
    !other.is_deleting && is_like(constraint, pod, &other.traits)
}

fn is_like(constraint: &SpreadConstraint, pod: &PodInfo, traits: &Traits) -> bool {
    !constraint.selector.is_empty()
        && *traits.namespace == *pod.key.namespace
        && selector::matches(&constraint.selector, Some(&traits.labels))
}

/// How many pods of a node count. `like` keeps who does, for one constraint and pod.
pub fn count(
    constraint: &SpreadConstraint,
    pod: &PodInfo,
    node: &NodeInfo,
    like: &mut Memo<bool>,
) -> i64 {
    sum(node, |alike| {
        *like.get(&alike.traits, |one| is_like(constraint, pod, one))
    })
}

/// The same where no other node is looked at: no traits are there twice.
pub fn count_once(constraint: &SpreadConstraint, pod: &PodInfo, node: &NodeInfo) -> i64 {
    sum(node, |alike| is_like(constraint, pod, &alike.traits))
}

fn sum(node: &NodeInfo, mut is_counted: impl FnMut(&Alike) -> bool) -> i64 {
    let counted = node.alike.iter().filter(|alike| is_counted(alike));
    counted.map(|alike| alike.pods - alike.leaving).sum()
}
