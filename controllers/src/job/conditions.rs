//! Conditions of a Job. Pure.

use coracle_client::clock;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
pub(super) const SUSPENDED: &str = "Suspended";
/// Comes before Failed: it is decided, and the pods are on their way out.
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// Comes before Complete.
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";

pub(super) fn new(
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> JobCondition {
    let now = Some(Time(clock::seconds(now)));
    JobCondition {
        type_: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        last_probe_time: now.clone(),
        last_transition_time: now,
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
    }
}

pub(super) fn find<'a>(conditions: &'a [JobCondition], kind: &str) -> Option<&'a JobCondition> {
    conditions.iter().find(|one| one.type_ == kind)
}

/// The condition, if it holds.
pub(super) fn holding<'a>(conditions: &'a [JobCondition], kind: &str) -> Option<&'a JobCondition> {
    find(conditions, kind).filter(|one| one.status == "True")
}

pub(super) fn is_true(conditions: &[JobCondition], kind: &str) -> bool {
    holding(conditions, kind).is_some()
}

/// Adds or replaces a condition; one that never held is not added as False. Says whether
/// anything changed.
pub(super) fn ensure(conditions: &mut Vec<JobCondition>, wanted: JobCondition) -> bool {
    match conditions.iter_mut().find(|one| one.type_ == wanted.type_) {
        Some(known) => {
            let same = known.status == wanted.status
                && known.reason == wanted.reason
                && known.message == wanted.message;
            if !same {
                *known = wanted;
            }
            !same
        }
        None if wanted.status == "True" => {
            conditions.push(wanted);
            true
        }
        None => false,
    }
}
