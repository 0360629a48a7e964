//! What a set's status should say. Pure.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::kind::{Replicated, Spec};
use super::plan::Plan;
use crate::labels::Selector;
use crate::pods;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The status after a pass; `failure` is what kept it from creating or deleting pods.
pub(super) fn next<K: Replicated>(
    set: &K,
    spec: &Spec<'_>,
    plan: &Plan,
    failure: Option<&str>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let labels = spec
        .template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    let template = Selector::from_map(labels);
    let count = |test: &dyn Fn(&Pod) -> bool| plan.active.iter().filter(|pod| test(pod)).count();
    let labeled = count(&|pod| template.matches(pod.metadata.labels.as_ref()));
    let ready = count(&pods::is_ready);
    let available = count(&|pod| pods::is_available(pod, spec.min_ready_seconds, now));
    let old = set.status();
    ReplicaSetStatus {
        replicas: number(plan.active.len()),
        fully_labeled_replicas: nonzero(labeled),
        ready_replicas: nonzero(ready),
        available_replicas: nonzero(available),
        terminating_replicas: K::COUNTS_TERMINATING.then(|| number(plan.terminating.len())),
        observed_generation: set.meta().generation,
        conditions: conditions(old.conditions, spec, plan, failure, now),
    }
}

/// Whether somebody may wait for it: the set has settled, its spec was seen, or a failure has begun
/// or ended. Anything else is a count on the way.
pub(super) fn is_news(old: &ReplicaSetStatus, new: &ReplicaSetStatus, spec: &Spec<'_>) -> bool {
    let all = |count: Option<i32>| count.unwrap_or(0) == spec.replicas;
    let settled = new.replicas == spec.replicas
        && all(new.ready_replicas)
        && all(new.available_replicas)
        && new.terminating_replicas.unwrap_or(0) == 0;
    settled
        || old.observed_generation != new.observed_generation
        || old.conditions != new.conditions
}

/// The failure stays as it was first told, until a pass succeeds.
fn conditions(
    old: Option<Vec<ReplicaSetCondition>>,
    spec: &Spec<'_>,
    plan: &Plan,
    failure: Option<&str>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = old.unwrap_or_default();
    let known = conditions.iter().any(|one| one.type_ == REPLICA_FAILURE);
    match failure {
        None => conditions.retain(|one| one.type_ != REPLICA_FAILURE),
        Some(message) if !known => {
            let missing = plan.active.len() < usize::try_from(spec.replicas).unwrap_or(0);
            let reason = if missing {
                "FailedCreate"
            } else {
                "FailedDelete"
            };
            conditions.push(ReplicaSetCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_transition_time: Some(Time(clock::seconds(now))),
            });
        }
        Some(_) => {}
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// When the next ready pod becomes available, if that is still to come.
pub(super) fn next_check(
    active: &[Arc<Pod>],
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let waits = active
        .iter()
        .filter_map(|pod| pods::available_in(pod, min_ready_seconds, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Upstream leaves zeros out on the wire.
fn nonzero(count: usize) -> Option<i32> {
    (count > 0).then(|| number(count))
}
