//! The conditions of a namespace that is being emptied, in upstream's words. Pure.

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What goes wrong or remains; a condition that is not told is fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) condition: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

pub(super) const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";
pub(super) const PARSING: &str = "NamespaceDeletionGroupVersionParsingFailure";
pub(super) const CONTENT: &str = "NamespaceDeletionContentFailure";
pub(super) const REMAINING: &str = "NamespaceContentRemaining";
pub(super) const FINALIZERS: &str = "NamespaceFinalizersRemaining";

/// Type, reason and message of each when there is no trouble, in the order they are listed.
const FINE: [(&str, &str, &str); 5] = [
    (
        DISCOVERY,
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        PARSING,
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        CONTENT,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        REMAINING,
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        FINALIZERS,
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// Brings the conditions up to date; true if any changed.
pub(super) fn update(
    conditions: &mut Vec<NamespaceCondition>,
    troubles: &[Trouble],
    now: &Time,
) -> bool {
    let mut changed = false;
    for (type_, fine_reason, fine_message) in FINE {
        let trouble = troubles.iter().find(|one| one.condition == type_);
        let status = if trouble.is_some() { "True" } else { "False" };
        let reason = trouble.map_or(fine_reason, |one| one.reason);
        let message = trouble.map_or(fine_message, |one| &one.message);
        let new = NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(now.clone()),
        };
        changed |= put(conditions, new);
    }
    changed
}

fn put(conditions: &mut Vec<NamespaceCondition>, mut new: NamespaceCondition) -> bool {
    let Some(old) = conditions.iter_mut().find(|one| one.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time
            .clone_from(&old.last_transition_time);
    }
    let changed = *old != new
        && (old.status != new.status || old.reason != new.reason || old.message != new.message);
    if changed {
        *old = new;
    }
    changed
}

#[cfg(test)]
mod tests;
