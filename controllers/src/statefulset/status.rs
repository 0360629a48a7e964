//! What a set's status should say. Pure.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::identity::revision_of;
use super::plan::Observed;
use super::spec::{self, Strategy};
use crate::pods;

/// Counts the pods that are there.
pub(super) fn next(observed: &Observed<'_>) -> StatefulSetStatus {
    let min_ready_seconds = spec::min_ready_seconds(observed.spec);
    let count = |holds: &dyn Fn(&Pod) -> bool| {
        let pods = observed.pods.values();
        i32::try_from(pods.filter(|pod| holds(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let old = observed.set.status.as_ref();
    StatefulSetStatus {
        replicas: count(&|_| true),
        ready_replicas: nonzero(count(&is_ready)),
        available_replicas: Some(count(&|pod| {
            is_ready(pod) && pods::is_available(pod, min_ready_seconds, observed.now)
        })),
        current_replicas: nonzero(count(&|pod| {
            !pods::is_deleting(pod) && revision_of(pod) == observed.current.name
        })),
        updated_replicas: nonzero(count(&|pod| {
            !pods::is_deleting(pod) && revision_of(pod) == observed.update.name
        })),
        current_revision: Some(observed.current.name.to_owned()),
        update_revision: Some(observed.update.name.to_owned()),
        observed_generation: observed.set.metadata.generation,
        collision_count: Some(old.and_then(|old| old.collision_count).unwrap_or(0)),
        conditions: old.and_then(|old| old.conditions.clone()),
    }
}

/// Takes pods that were deleted for a newer revision off the old one's.
pub(super) fn take_off(status: &mut StatefulSetStatus, outdated: usize) {
    let outdated = i32::try_from(outdated).unwrap_or(i32::MAX);
    let left = status
        .current_replicas
        .unwrap_or(0)
        .saturating_sub(outdated);
    status.current_replicas = nonzero(left.max(0));
}

/// Once every pod is there, ready and new, the new revision is the current one.
pub(super) fn complete(status: &mut StatefulSetStatus, spec: &StatefulSetSpec) {
    let replicas = spec::replicas(spec);
    let all = |count: Option<i32>| count.unwrap_or(0) == replicas;
    let is_rolling = matches!(spec::strategy(spec), Strategy::Rolling { .. });
    if is_rolling
        && status.replicas == replicas
        && all(status.ready_replicas)
        && all(status.updated_replicas)
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
}

/// Whether a write would say something new.
pub(super) fn differs(set: &StatefulSet, wanted: &StatefulSetStatus) -> bool {
    let known = set.status.clone().unwrap_or_default();
    let count = |value: Option<i32>| value.unwrap_or(0);
    wanted.observed_generation > known.observed_generation
        || wanted.replicas != known.replicas
        || count(wanted.ready_replicas) != count(known.ready_replicas)
        || count(wanted.available_replicas) != count(known.available_replicas)
        || count(wanted.current_replicas) != count(known.current_replicas)
        || count(wanted.updated_replicas) != count(known.updated_replicas)
        || wanted.current_revision != known.current_revision
        || wanted.update_revision != known.update_revision
        || count(wanted.collision_count) != count(known.collision_count)
}

/// When the next ready pod becomes available, if that is still to come.
pub(super) fn next_check(observed: &Observed<'_>) -> Option<Duration> {
    let min_ready_seconds = spec::min_ready_seconds(observed.spec);
    let waits = observed
        .pods
        .values()
        .filter_map(|pod| pods::available_in(pod, min_ready_seconds, observed.now));
    waits.filter(|wait| !wait.is_zero()).min()
}

/// Upstream leaves zeros out on the wire.
fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
