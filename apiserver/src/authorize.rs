//! What a user may do: node authorizer, then RBAC, as `--authorization-mode=Node,RBAC`.
//!
//! Reads rules through caches that follow the store; never writes. The refusal is upstream's 403.

pub mod counts; // What is counted.
pub mod covers; // Whether some rules already grant what others would.
pub mod escalation; // Nobody grants what they do not have.
pub mod expression; // What expressions ask.
pub mod follow; // Keeps the indexes in step with the store.
pub mod node; // What the agent of a node may do.
pub mod node_graph; // What leads from an object to a node.
pub mod rbac; // Roles and bindings.
pub mod rule; // One policy rule.

use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::bootstrap;
use crate::request_info::RequestInfo;
use crate::view::View;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::status::{Status, Subject};
use counts::Counts;
use node::NodeAuthorizer;
use rbac::Rbac;
use rule::Rule;
use std::sync::Arc;
use tokio::time::Instant;

/// The resources whose changes the authorizer follows.
pub const FOLLOWED: &[(&str, &str)] = &[
    (rbac::GROUP, "clusterroles"),
    (rbac::GROUP, "clusterrolebindings"),
    (rbac::GROUP, "roles"),
    (rbac::GROUP, "rolebindings"),
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
];

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

/// Node and RBAC authorization over indexes that follow the store.
#[derive(Debug)]
pub struct Authorizer {
    node: NodeAuthorizer,
    rbac: Rbac,
    pub counts: Counts,
}

impl Authorizer {
    pub fn new(view: Arc<dyn View>) -> Self {
        Self {
            node: NodeAuthorizer::new(bootstrap::node_rules(), view),
            rbac: Rbac::default(),
            counts: Counts::default(),
        }
    }

    /// Takes over one object of a followed resource: its new state, or none when it is gone.
    pub fn apply(&self, group: &str, plural: &str, key: &ObjectKey, object: Option<&Object>) {
        if group == rbac::GROUP {
            return self.rbac.apply(plural, key, object);
        }
        let begun = Instant::now();
        self.node.apply(plural, key, object);
        self.counts.acted(plural, object.is_some(), begun.elapsed());
    }

    pub fn authorize(&self, user: &User, info: &RequestInfo) -> Decision {
        if user.in_group(MASTERS) {
            return Decision::Allowed {
                reason: String::new(),
            };
        }
        let node = self.node.authorize(user, info);
        if node.is_allowed() {
            self.counts.allowed_by_node();
            return node;
        }
        match self.rbac.authorize(user, info) {
            Decision::NoOpinion { reason } => Decision::NoOpinion {
                reason: both(node.reason(), &reason),
            },
            allowed => {
                self.counts.allowed_by_rbac();
                allowed
            }
        }
    }

    /// Like `authorize`, with the 403 made.
    pub fn check(&self, user: &User, info: &RequestInfo) -> Result<(), Status> {
        let decision = self.authorize(user, info);
        if decision.is_allowed() {
            return Ok(());
        }
        Err(forbidden(user, info, decision.reason()))
    }

    /// The rules RBAC gives the user in a namespace, and what was not found on the way.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<rbac::RoleError>) {
        self.rbac.rules_for(user, namespace)
    }

    pub fn rbac(&self) -> &Rbac {
        &self.rbac
    }
}

fn both(first: &str, second: &str) -> String {
    match (first, second) {
        ("", one) | (one, "") => one.to_owned(),
        (first, second) => format!("{first}\n{second}"),
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
    why = sanitized(&why);
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    if !info.is_resource_request {
        return Status {
            code: 403,
            reason: "Forbidden".into(),
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

/// Nothing that a browser could take for HTML.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
