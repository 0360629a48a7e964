//! Kubernetes `Status`: one constructor a reason, with upstream's codes and message forms.

use crate::field::FieldError;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A failure as it goes over the wire. `code` is the HTTP status code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    pub code: u16,
    pub reason: Cow<'static, str>,
    pub message: String,
    /// `details`, already in wire form; null when there are none.
    pub details: Value,
}

/// Group and plural (or kind) that a message and `details` name.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub group: &'a str,
    pub resource: &'a str,
    pub name: &'a str,
}

impl Subject<'_> {
    /// `deployments.apps "web"`, or `pods "web"` in the core group.
    fn quoted(&self) -> String {
        format!("{} \"{}\"", self.qualified(), self.name)
    }

    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Value {
        let mut details = json!({});
        if !self.name.is_empty() {
            details["name"] = self.name.into();
        }
        if !self.group.is_empty() {
            details["group"] = self.group.into();
        }
        if !self.resource.is_empty() {
            details["kind"] = self.resource.into();
        }
        details
    }
}

/// Several errors as one text, each once, as upstream joins them.
pub fn aggregate(errors: &[String]) -> String {
    let mut seen = BTreeSet::new();
    let errors = errors.iter().map(String::as_str);
    let different: Vec<&str> = errors.filter(|error| seen.insert(*error)).collect();
    match different.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl Status {
    fn about(code: u16, reason: &'static str, subject: Subject<'_>, message: String) -> Self {
        Self {
            code,
            reason: reason.into(),
            message,
            details: subject.details(),
        }
    }

    fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: Value::Null,
        }
    }

    pub fn not_found(subject: Subject<'_>) -> Self {
        Self::about(
            404,
            "NotFound",
            subject,
            format!("{} not found", subject.quoted()),
        )
    }

    /// No such path at all.
    pub fn path_not_found() -> Self {
        Self {
            details: json!({}),
            ..Self::plain(
                404,
                "NotFound",
                "the server could not find the requested resource",
            )
        }
    }

    pub fn already_exists(subject: Subject<'_>) -> Self {
        Self::about(
            409,
            "AlreadyExists",
            subject,
            format!("{} already exists", subject.quoted()),
        )
    }

    pub fn conflict(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {}: {why}",
            subject.quoted()
        );
        Self::about(409, "Conflict", subject, message)
    }

    /// The conflict of a write that carried an old `resourceVersion`.
    pub fn modified(subject: Subject<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(subject, why)
    }

    pub fn forbidden(subject: Subject<'_>, why: &str) -> Self {
        let message = if subject.name.is_empty() {
            format!("{} is forbidden: {why}", subject.qualified())
        } else {
            format!("{} is forbidden: {why}", subject.quoted())
        };
        Self::about(403, "Forbidden", subject, message)
    }

    /// `subject.resource` is the kind here, as upstream has it: `Pod "web" is invalid: ...`.
    pub fn invalid(subject: Subject<'_>, errors: &[FieldError]) -> Self {
        // What is said twice stands once in the message, and twice among the causes.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let why = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut status = Self::about(
            422,
            "Invalid",
            subject,
            format!("{} is invalid: {why}", subject.quoted()),
        );
        status.details["causes"] = errors
            .iter()
            .map(|error| {
                json!({
                    "reason": error.kind.reason(),
                    "message": error.body(),
                    "field": error.path.as_str(),
                })
            })
            .collect();
        status
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// An error for which upstream has no reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    pub fn unauthorized() -> Self {
        Self::plain(401, "Unauthorized", "Unauthorized")
    }

    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let subject = Subject {
            group,
            resource,
            name: "",
        };
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            subject.qualified()
        );
        Self::about(405, "MethodNotAllowed", subject, message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::plain(406, "NotAcceptable", message)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::plain(415, "UnsupportedMediaType", message)
    }

    pub fn request_too_large(message: impl Into<String>) -> Self {
        Self::plain(413, "RequestEntityTooLarge", message)
    }

    /// Nothing is written until there is space: what is there can be read.
    pub fn insufficient_storage(message: impl Into<String>) -> Self {
        Self::plain(507, "InsufficientStorage", message)
    }

    /// The revision asked for is compacted away: the client lists again.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = json!({ "retryAfterSeconds": retry_after_seconds });
        Self {
            details,
            ..Self::plain(429, "TooManyRequests", message)
        }
    }

    pub fn internal(message: impl std::fmt::Display) -> Self {
        let details = json!({ "causes": [{ "message": message.to_string() }] });
        Self {
            details,
            ..Self::plain(
                500,
                "InternalError",
                format!("Internal error occurred: {message}"),
            )
        }
    }

    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::plain(503, "ServiceUnavailable", message)
    }

    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = json!({ "retryAfterSeconds": retry_after_seconds });
        Self {
            details,
            ..Self::plain(504, "Timeout", message)
        }
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            value["reason"] = self.reason.as_ref().into();
        }
        if !self.details.is_null() {
            value["details"] = self.details.clone();
        }
        value
    }
}
