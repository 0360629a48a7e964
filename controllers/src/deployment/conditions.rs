//! A Deployment's conditions, with upstream's reasons and texts. Pure.

use coracle_client::clock;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(super) mod reason {
    pub(in super::super) const SET_UPDATED: &str = "ReplicaSetUpdated";
    pub(in super::super) const SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
    pub(in super::super) const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
    pub(in super::super) const FOUND_NEW_SET: &str = "FoundNewReplicaSet";
    pub(in super::super) const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
    pub(in super::super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    pub(in super::super) const PAUSED: &str = "DeploymentPaused";
    pub(in super::super) const RESUMED: &str = "DeploymentResumed";
    pub(in super::super) const AVAILABLE: &str = "MinimumReplicasAvailable";
    pub(in super::super) const UNAVAILABLE: &str = "MinimumReplicasUnavailable";
}

pub(super) fn new(
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    let now = Time(clock::seconds(now));
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.into()),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now),
    }
}

pub(super) fn get<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind)
}

pub(super) fn has_reason(status: &DeploymentStatus, kind: &str, reason: &str) -> bool {
    get(status, kind).is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// Whether it tells the end of a rollout to another set than this: whoever made this one died
/// before it was told, or one of earlier days is taken up again. Upstream goes by the reason alone,
/// and so never finds that such a rollout has run out of time.
pub(super) fn is_end_of_another(progress: &DeploymentCondition, set: &str) -> bool {
    let told = progress.message.as_deref().unwrap_or_default();
    let named = told
        .strip_prefix("ReplicaSet \"")
        .and_then(|rest| rest.split('"').next());
    progress.reason.as_deref() == Some(reason::NEW_SET_AVAILABLE)
        && named.is_some_and(|named| named != set)
}

/// Leaves a condition alone that says the same already; keeps the time of the last transition
/// when only the reason changes.
pub(super) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = get(status, &condition.type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition.last_transition_time = current.last_transition_time.clone();
    }
    replace(status, condition);
}

/// Puts the condition in place of the one there was, whatever that said.
pub(super) fn replace(status: &mut DeploymentStatus, condition: DeploymentCondition) {
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

pub(super) fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
    status.conditions = status
        .conditions
        .take()
        .filter(|conditions| !conditions.is_empty());
}
