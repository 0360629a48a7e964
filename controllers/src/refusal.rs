//! What the server said when it refused.

use kube::Error;
use kube::core::Status;

/// The server's own words; for a connection that failed, the client's.
pub(crate) fn message(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.is_not_found())
}

pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.is_conflict())
}

pub(crate) fn is_already_exists(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.is_already_exists())
}

/// The namespace is ending: every creation in it will fail, and nobody needs to hear of it.
pub(crate) fn is_namespace_terminating(error: &Error) -> bool {
    matches!(error, Error::Api(status) if has_cause(status, "NamespaceTerminating"))
}

fn has_cause(status: &Status, reason: &str) -> bool {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice());
    causes
        .unwrap_or_default()
        .iter()
        .any(|cause| cause.reason == reason)
}
