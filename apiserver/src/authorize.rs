//! What a user may do: node authorizer, then RBAC, as `--authorization-mode=Node,RBAC`.
//!
//! Reads rules through caches that follow the store; never writes. The refusal is upstream's 403.

use crate::authenticate::User;
use crate::request_info::RequestInfo;
use coracle_api::status::{Status, Subject};

/// An authorizer's answer. `reason` is for the log and for access reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allowed {
        reason: String,
    },
    /// Nobody allowed it.
    NoOpinion {
        reason: String,
    },
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }

    pub fn reason(&self) -> &str {
        match self {
            Self::Allowed { reason } | Self::NoOpinion { reason } => reason,
        }
    }
}

/// The 403 for a refused request, in upstream's words.
pub fn forbidden(user: &User, info: &RequestInfo, reason: &str) -> Status {
    let mut why = if info.is_resource_request {
        cannot_resource(user, info)
    } else {
        format!(
            "User \"{}\" cannot {} path \"{}\"",
            user.name, info.verb, info.path
        )
    };
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    if !info.is_resource_request {
        return Status {
            code: 403,
            reason: "Forbidden",
            message: format!("forbidden: {why}"),
            details: serde_json::json!({}),
        };
    }
    let subject = Subject {
        group: &info.group,
        resource: &info.resource,
        name: &info.name,
    };
    Status::forbidden(subject, &why)
}

fn cannot_resource(user: &User, info: &RequestInfo) -> String {
    let resource = match info.subresource.as_str() {
        "" => info.resource.clone(),
        subresource => format!("{}/{subresource}", info.resource),
    };
    let scope = if info.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", info.namespace)
    };
    format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
        user.name, info.verb, info.group
    )
}
