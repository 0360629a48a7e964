//! The status of an autoscaler while a pass makes it. Pure.

use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition as Condition,
    HorizontalPodAutoscalerStatus as Status, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const ABLE: &str = "AbleToScale";
pub(super) const ACTIVE: &str = "ScalingActive";
pub(super) const LIMITED: &str = "ScalingLimited";
/// Of a gate that is shut here: what an older controller may have left.
const SCALED_TO_ZERO: &str = "ScaledToZero";

pub(super) fn of(autoscaler: &HorizontalPodAutoscaler) -> Status {
    autoscaler.status.clone().unwrap_or_default()
}

pub(super) fn set(
    status: &mut Status,
    kind: &str,
    is_true: bool,
    reason: &str,
    message: impl Into<String>,
    now: Time,
) {
    let conditions = status.conditions.get_or_insert_default();
    let index = conditions.iter().position(|one| one.type_ == kind);
    let index = index.unwrap_or_else(|| {
        conditions.push(Condition {
            type_: kind.to_owned(),
            ..Condition::default()
        });
        conditions.len() - 1
    });
    let condition = &mut conditions[index];
    let value = if is_true { "True" } else { "False" };
    if condition.status != value {
        condition.last_transition_time = Some(now);
        value.clone_into(&mut condition.status);
    }
    condition.reason = Some(reason.to_owned());
    condition.message = Some(message.into());
}

pub(super) fn drop_scaled_to_zero(status: &mut Status) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|one| one.type_ != SCALED_TO_ZERO);
    }
}

/// What was seen in this pass. The observed generation is not among it, as upstream's loop does
/// not tell it.
pub(super) fn observed(status: &mut Status, current: i32, metrics: Vec<MetricStatus>) {
    status.current_replicas = Some(current);
    status.current_metrics = (!metrics.is_empty()).then_some(metrics);
    status.observed_generation = None;
}

/// Nothing and an empty list are the same.
pub(super) fn differs(old: &Status, new: &Status) -> bool {
    let plain = |status: &Status| {
        let mut status = status.clone();
        let empty = status.conditions.as_ref().is_some_and(Vec::is_empty);
        if empty {
            status.conditions = None;
        }
        let empty = status.current_metrics.as_ref().is_some_and(Vec::is_empty);
        if empty {
            status.current_metrics = None;
        }
        status.current_replicas = status.current_replicas.or(Some(0));
        status
    };
    plain(old) != plain(new)
}
