//! Counts for one budget. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::seconds;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pods;
use crate::scaled::{Rounding, scaled};

const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
/// For how long a pod that was let go is counted as gone before it is seen so. Upstream's.
const DELETION_TIMEOUT: Duration = Duration::from_secs(2 * 60);

#[derive(Debug)]
pub(super) struct Plan {
    pub status: PodDisruptionBudgetStatus,
    /// Those that were let go, and stayed.
    pub not_deleted: Vec<Arc<Pod>>,
    /// When the next one of them is believed to stay.
    pub again: Option<Duration>,
}

/// Whether the count rests on what the pods' controllers ask for.
pub(super) fn needs_scale(spec: &PodDisruptionBudgetSpec) -> bool {
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// `scale` is what the pods' controllers ask for, if that is needed.
pub(super) fn plan(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    scale: i32,
    now: Timestamp,
) -> Plan {
    let known = budget.status.clone().unwrap_or_default();
    let disrupted = known.disrupted_pods.unwrap_or_default();
    let (mut going, mut not_deleted, mut again) = (BTreeMap::new(), Vec::new(), None);
    let mut healthy = 0;
    for pod in pods.iter().filter(|pod| !pods::is_deleting(pod)) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if let Some(since) = disrupted.get(name) {
            let left = left(since, now);
            if !left.is_zero() {
                going.insert(name.to_owned(), since.clone());
                again = Some(again.map_or(left, |other: Duration| other.min(left)));
                continue;
            }
            not_deleted.push(pod.clone());
        }
        healthy += i32::from(pods::is_ready(pod));
    }
    let (expected, desired) = expected(budget.spec.as_ref(), pods.len(), scale);
    let spare = healthy.saturating_sub(desired).max(0);
    // A budget whose first pods are yet to be seen lets nobody go.
    let allowed = if expected > 0 { spare } else { 0 };
    let mut status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!going.is_empty()).then_some(going),
        observed_generation: budget.metadata.generation,
        conditions: known.conditions,
    };
    let (value, reason) = match allowed {
        0 => ("False", "InsufficientPods"),
        _ => ("True", "SufficientPods"),
    };
    set_condition(&mut status, value, reason, String::new(), time(now));
    Plan {
        status,
        not_deleted,
        again,
    }
}

/// How many pods there should be, and how many of them well.
fn expected(spec: Option<&PodDisruptionBudgetSpec>, pods: usize, scale: i32) -> (i32, i32) {
    let pods = i32::try_from(pods).unwrap_or(i32::MAX);
    let max_unavailable = spec.and_then(|spec| spec.max_unavailable.as_ref());
    let min_available = spec.and_then(|spec| spec.min_available.as_ref());
    match (max_unavailable, min_available) {
        (Some(most), _) => {
            let most = scaled(most, scale, Rounding::Up);
            (scale, scale.saturating_sub(most).max(0))
        }
        (None, Some(IntOrString::Int(least))) => (pods, *least),
        (None, Some(share)) => (scale, scaled(share, scale, Rounding::Up)),
        (None, None) => (0, 0),
    }
}

/// The status of a budget that cannot be counted, and why.
pub(super) fn failed(
    budget: &PodDisruptionBudget,
    why: String,
    now: Time,
) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone().unwrap_or_default();
    status.disruptions_allowed = Some(0);
    set_condition(&mut status, "False", "SyncFailed", why, now);
    status
}

/// Whether a write would say something new.
pub(super) fn differs(budget: &PodDisruptionBudget, status: &PodDisruptionBudgetStatus) -> bool {
    let mut known = budget.status.clone().unwrap_or_default();
    known.disrupted_pods = known.disrupted_pods.filter(|pods| !pods.is_empty());
    known != *status
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    value: &str,
    reason: &str,
    message: String,
    now: Time,
) {
    let observed_generation = status.observed_generation.filter(|number| *number != 0);
    let conditions = status.conditions.get_or_insert_default();
    let mut condition = Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: value.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation,
        last_transition_time: now,
    };
    let known = conditions
        .iter_mut()
        .find(|one| one.type_ == DISRUPTION_ALLOWED);
    match known {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

fn left(since: &Time, now: Timestamp) -> Duration {
    let gone = Duration::try_from(now.duration_since(since.0)).unwrap_or(Duration::ZERO);
    DELETION_TIMEOUT.saturating_sub(gone)
}

fn time(now: Timestamp) -> Time {
    Time(seconds(now))
}
