//! Which pods go, and when to look again.

use crate::nodes;
use coracle_client::clock::Instant;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Ended pods that are kept, as upstream's `--terminated-pod-gc-threshold`.
const ENDED_MAX: usize = 12_500;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    NodeGone,
    NeverScheduled,
    OutOfService,
    TooManyEnded,
}

#[derive(Clone, Debug)]
pub(super) struct Removal {
    pub(super) pod: Arc<Pod>,
    pub(super) reason: Reason,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) removals: Vec<Removal>,
    /// When a node that is gone will have been gone long enough.
    pub(super) look_again: Option<Duration>,
}

pub(super) fn node_name(pod: &Pod) -> &str {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or("")
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Cheap: whether a changed pod can be one that goes.
pub(super) fn may_concern(pod: &Pod, has_node: impl Fn(&str) -> bool) -> bool {
    let node = node_name(pod);
    is_deleting(pod) || has_ended(pod) || !node.is_empty() && !has_node(node)
}

/// Brings up to date since when the nodes that pods name are not there.
pub(super) fn note_missing(
    missing: &mut HashMap<String, Instant>,
    pods: &[Arc<Pod>],
    nodes: &[Arc<Node>],
    now: Instant,
) {
    let there: HashSet<&str> = nodes
        .iter()
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    let named: HashSet<&str> = pods
        .iter()
        .map(|pod| node_name(pod))
        .filter(|name| !name.is_empty() && !there.contains(name))
        .collect();
    missing.retain(|name, _| named.contains(name.as_str()));
    for name in named {
        missing.entry(name.to_owned()).or_insert(now);
    }
}

pub(super) fn plan(
    pods: &[Arc<Pod>],
    nodes: &[Arc<Node>],
    missing: &HashMap<String, Instant>,
    now: Instant,
    quarantine: Duration,
) -> Plan {
    let mut plan = Plan::default();
    let out: HashSet<&str> = nodes
        .iter()
        .filter(|node| is_out_of_service(node))
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    for pod in pods {
        let node = node_name(pod);
        let reason = if node.is_empty() && is_deleting(pod) {
            Some(Reason::NeverScheduled)
        } else if out.contains(node) && is_deleting(pod) {
            Some(Reason::OutOfService)
        } else if let Some(since) = missing.get(node) {
            let left = quarantine.saturating_sub(now - *since);
            if !left.is_zero() {
                plan.look_again = Some(plan.look_again.map_or(left, |other| other.min(left)));
            }
            left.is_zero().then_some(Reason::NodeGone)
        } else {
            None
        };
        if let Some(reason) = reason {
            plan.removals.push(Removal {
                pod: Arc::clone(pod),
                reason,
            });
        }
    }
    plan.removals.extend(surplus(pods));
    plan
}

fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    !nodes::is_ready(node)
        && taints.is_some_and(|all| all.iter().any(|taint| taint.key == OUT_OF_SERVICE))
}

/// Evicted ones first, then the oldest.
fn surplus(pods: &[Arc<Pod>]) -> Vec<Removal> {
    let mut ended: Vec<&Arc<Pod>> = pods
        .iter()
        .filter(|pod| has_ended(pod) && !is_deleting(pod))
        .collect();
    let count = ended.len().saturating_sub(ENDED_MAX);
    if count == 0 {
        return Vec::new();
    }
    let order = |pod: &&Arc<Pod>| {
        let reason = pod
            .status
            .as_ref()
            .and_then(|status| status.reason.as_deref());
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (
            reason != Some("Evicted"),
            created,
            pod.metadata.name.clone(),
        )
    };
    ended.sort_by_cached_key(order);
    let chosen = ended.into_iter().take(count);
    chosen
        .map(|pod| Removal {
            pod: Arc::clone(pod),
            reason: Reason::TooManyEnded,
        })
        .collect()
}

#[cfg(test)]
mod tests;
