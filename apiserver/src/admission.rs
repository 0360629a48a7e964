//! Admission: what may still change or stop a write after it was authorized and decoded.
//!
//! Mutating plugins run before validation of the object, validating ones after it, each list in
//! upstream's order. Reads the store through a view; never writes.

pub mod certificates; // Who may approve and sign, and what may not be asked for.
pub mod default_tolerations; // Pods stay five minutes on a node that is lost.
pub mod namespace_lifecycle; // Nothing is created in a namespace that is not there or ends.
pub mod node_restriction; // A node touches itself and its pods.
pub mod node_taint; // A new node starts not ready.
pub mod priority; // The number behind a priority class.
pub mod service_account; // Every pod acts as a service account that is there.

use crate::authenticate::User;
use crate::authorize::{Authorizer, escalation, rbac};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The request around an object. `name` and `namespace` are empty where there are none; `name` is
/// empty on a create of the main resource.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub operation: Operation,
    pub resource: &'static Resource,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The stored object, on update and delete.
    pub old: Option<&'a Object>,
    pub dry_run: bool,
}

impl Attributes<'_> {
    /// True for the resource itself, not a subresource of it.
    pub fn is_main(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.is(group, plural)
    }

    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }

    /// The 403 of an admission plugin. A new object is named by its name or what it shall begin
    /// with.
    pub fn forbidden(&self, object: Option<&Object>, why: impl AsRef<str>) -> Status {
        let text = |path: &[&str]| object.map_or("", |object| object.str(path));
        let candidates = [
            self.name,
            text(&["metadata", "name"]),
            text(&["metadata", "generateName"]),
            "Unknown",
        ];
        let name = candidates.into_iter().find(|name| !name.is_empty());
        let subject = Subject {
            group: self.resource.group,
            resource: self.resource.plural,
            name: name.unwrap_or_default(),
        };
        Status::forbidden(subject, why.as_ref())
    }
}

/// The plugins with what they read.
pub struct Chain {
    view: Arc<dyn View>,
    authorizer: Arc<Authorizer>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl Chain {
    pub fn new(view: Arc<dyn View>, authorizer: Arc<Authorizer>) -> Self {
        Self { view, authorizer }
    }

    /// Before validation, on create and update. `object` is the new state; for a subresource with
    /// a body of its own, that body.
    pub async fn mutate(&self, object: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
        let view = self.view.as_ref();
        namespace_lifecycle::admit(view, Some(object), asked)?;
        service_account::admit(view, object, asked).await?;
        node_restriction::admit(view, Some(object), asked)?;
        node_taint::admit(object, asked);
        priority::admit(view, object, asked)?;
        default_tolerations::admit(object, asked);
        if asked.resource.group == rbac::GROUP && asked.subresource.is_empty() {
            let plural = asked.resource.plural;
            escalation::check(&self.authorizer, asked.user, plural, object, asked.old)?;
        }
        Ok(())
    }

    /// After validation on create and update; the only call on delete and connect, without an
    /// object.
    pub fn validate(&self, object: Option<&Object>, asked: &Attributes<'_>) -> Result<(), Status> {
        let view = self.view.as_ref();
        if matches!(asked.operation, Operation::Delete | Operation::Connect) {
            namespace_lifecycle::admit(view, None, asked)?;
            node_restriction::admit(view, None, asked)?;
        }
        let Some(object) = object else {
            return Ok(());
        };
        priority::validate(view, object, asked)?;
        certificates::approval(&self.authorizer, object, asked)?;
        certificates::signing(&self.authorizer, object, asked)?;
        certificates::subject_restriction(object, asked)
    }
}

#[cfg(test)]
mod tests;
