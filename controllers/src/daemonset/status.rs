//! The status of a DaemonSet, from its nodes and pods. Pure.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSetStatus;
use k8s_openapi::api::core::v1::Pod;

use super::plan::Observed;
use crate::pods;

/// `processed` says that the pass acted on this generation, not only counted.
pub(super) fn next(observed: &Observed<'_>, processed: bool) -> DaemonSetStatus {
    let mut status = observed.set.status.clone().unwrap_or_default();
    status.desired_number_scheduled = 0;
    status.current_number_scheduled = 0;
    status.number_misscheduled = 0;
    status.number_ready = 0;
    let (mut updated, mut available) = (0, 0);
    for (node, placement) in observed.nodes {
        let first = first_on(observed, node);
        if !placement.run {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(pod) = first else {
            continue;
        };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pods::is_ready(pod));
        updated += i32::from(observed.is_updated(pod));
        available += i32::from(observed.is_available(pod));
    }
    let unavailable = status.desired_number_scheduled - available;
    let counted = |number: i32| (number != 0).then_some(number);
    status.updated_number_scheduled = counted(updated);
    status.number_available = counted(available);
    status.number_unavailable = counted(unavailable);
    if processed {
        status.observed_generation = observed.set.metadata.generation;
    }
    status
}

/// Whether somebody may wait for it: the set has settled, or its spec was seen. Anything else is a
/// count on the way.
pub(super) fn is_news(old: Option<&DaemonSetStatus>, new: &DaemonSetStatus) -> bool {
    let all = |count: i32| count == new.desired_number_scheduled;
    let settled = all(new.current_number_scheduled)
        && all(new.number_ready)
        && all(new.updated_number_scheduled.unwrap_or(0))
        && all(new.number_available.unwrap_or(0))
        && new.number_misscheduled == 0;
    let seen = old.and_then(|old| old.observed_generation);
    settled || seen != new.observed_generation || old.is_none()
}

/// When the next ready pod will have been ready for long enough.
pub(super) fn next_check(observed: &Observed<'_>) -> Option<Duration> {
    let seconds = observed.spec.min_ready_seconds;
    let pods = observed.pods.values().flatten();
    pods.filter_map(|pod| pods::available_in(pod, seconds, observed.now))
        .filter(|left| !left.is_zero())
        .min()
}

/// The pod that counts for its node.
fn first_on<'a>(observed: &Observed<'a>, node: &str) -> Option<&'a Arc<Pod>> {
    observed.pods.get(node)?.first()
}
