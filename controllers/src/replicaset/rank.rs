//! Which pods go first when there are too many. Pure.
//!
//! Upstream's order: not assigned to a node, then by phase, not ready, low deletion cost, doubled
//! up on a node, ready for a shorter time, restarted more often, younger. Ages are compared by
//! powers of two and then by uid, so that the youngest are not always the ones to go.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::pods;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods that are missed least. `related` are the pods that count as doubling up.
pub(super) fn first_to_go(
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| pods::is_active(pod)) {
        *on_node.entry(pods::node_name(pod)).or_default() += 1;
    }
    let neighbours = |pod: &Pod| on_node.get(pods::node_name(pod)).copied().unwrap_or(0);
    let mut sorted: Vec<(Standing<'_>, &Arc<Pod>)> = active
        .iter()
        .map(|pod| (standing(pod, neighbours(pod), now), pod))
        .collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    sorted
        .into_iter()
        .take(count)
        .map(|(_, pod)| pod.clone())
        .collect()
}

/// What a pod is missed by, in the order of its weight; the least goes first. A total order:
/// upstream asks for restarts only where the times are equal to the second and for the uid where
/// they are not, which three pods can answer in a circle, and a sort must not be told that.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing<'a> {
    assigned: bool,
    phase: u8,
    ready: bool,
    deletion_cost: i32,
    neighbours: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<(i32, i32)>,
    age: Age,
    uid: Option<&'a str>,
}

/// As a power of two of nanoseconds; no time at all counts as youngest.
type Age = Option<Option<u32>>;

fn standing(pod: &Pod, neighbours: usize, now: Timestamp) -> Standing<'_> {
    let age = |since: Timestamp| {
        let age_ns = u128::try_from(now.duration_since(since).as_nanos()).unwrap_or(0);
        age_ns.checked_ilog2()
    };
    Standing {
        assigned: !pods::node_name(pod).is_empty(),
        phase: pods::phase_order(pod),
        ready: pods::is_ready(pod),
        deletion_cost: deletion_cost(pod),
        neighbours: Reverse(neighbours),
        ready_for: pods::ready_since(pod).map(age),
        restarts: Reverse(pods::restarts(pod)),
        age: created(pod).map(age),
        uid: pod.metadata.uid.as_deref(),
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|annotations| annotations.get(DELETION_COST));
    cost.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}
