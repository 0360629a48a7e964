//! Which pods go first when there are too many. Pure.
//!
//! Upstream's order: not assigned to a node, then by phase, not ready, low deletion cost, doubled
//! up on a node, ready for a shorter time, restarted more often, younger. Ages are compared by
//! powers of two and then by uid, so that the youngest are not always the ones to go.

use std::cmp::{Ordering, Reverse};
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
    let mut sorted: Vec<(&Arc<Pod>, usize)> =
        active.iter().map(|pod| (pod, neighbours(pod))).collect();
    sorted.sort_by(|(a, a_neighbours), (b, b_neighbours)| {
        compare(a, *a_neighbours, b, *b_neighbours, now)
    });
    sorted
        .into_iter()
        .take(count)
        .map(|(pod, _)| pod.clone())
        .collect()
}

fn compare(a: &Pod, a_neighbours: usize, b: &Pod, b_neighbours: usize, now: Timestamp) -> Ordering {
    let standing = |pod: &Pod, neighbours: usize| {
        (
            !pods::node_name(pod).is_empty(),
            pods::phase_order(pod),
            pods::is_ready(pod),
            deletion_cost(pod),
            Reverse(neighbours),
        )
    };
    let ready_for = |pod: &Pod| pods::ready_since(pod);
    let both_ready = pods::is_ready(a) && pods::is_ready(b);
    standing(a, a_neighbours)
        .cmp(&standing(b, b_neighbours))
        .then_with(|| match both_ready {
            true => by_age(a, ready_for(a), b, ready_for(b), now),
            false => Ordering::Equal,
        })
        .then_with(|| pods::restarts(b).cmp(&pods::restarts(a)))
        .then_with(|| by_age(a, created(a), b, created(b), now))
}

/// Younger by a power of two first, equals by uid; no time at all counts as youngest.
fn by_age(
    a: &Pod,
    a_since: Option<Timestamp>,
    b: &Pod,
    b_since: Option<Timestamp>,
    now: Timestamp,
) -> Ordering {
    match (a_since, b_since) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a_since), Some(b_since)) if a_since == b_since => Ordering::Equal,
        (Some(a_since), Some(b_since)) => magnitude(now, a_since)
            .cmp(&magnitude(now, b_since))
            .then_with(|| a.metadata.uid.cmp(&b.metadata.uid)),
    }
}

fn magnitude(now: Timestamp, since: Timestamp) -> Option<u32> {
    let age_ns = u128::try_from(now.duration_since(since).as_nanos()).unwrap_or(0);
    age_ns.checked_ilog2()
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|annotations| annotations.get(DELETION_COST));
    cost.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}
