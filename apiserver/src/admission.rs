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
pub mod resource_quota; // Nothing is written that a quota has no room for.
pub mod service_account; // Every pod acts as a service account that is there.

use crate::authenticate::User;
use crate::authorize::{Authorizer, escalation, rbac};
use crate::metrics::admission::{Step, Times};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject};
use std::sync::Arc;
use tokio::time::Instant;

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
    times: Arc<Times>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl Chain {
    pub fn new(view: Arc<dyn View>, authorizer: Arc<Authorizer>) -> Self {
        let times = Arc::default();
        Self {
            view,
            authorizer,
            times,
        }
    }

    /// How long it all took.
    pub fn times(&self) -> Arc<Times> {
        Arc::clone(&self.times)
    }

    /// Before validation, on create and update. `object` is the new state; for a subresource with
    /// a body of its own, that body.
    pub async fn mutate(&self, object: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
        let all = self.watch("", Step::Admit, asked);
        all.over(self.mutated(object, asked).await)
    }

    async fn mutated(&self, object: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
        let view = self.view.as_ref();
        let admit = |plugin| self.watch(plugin, Step::Admit, asked);
        let plugin = admit("NamespaceLifecycle");
        plugin.over(namespace_lifecycle::admit(view, Some(object), asked))?;
        let plugin = admit("ServiceAccount");
        plugin.over(service_account::admit(view, object, asked).await)?;
        let plugin = admit("NodeRestriction");
        plugin.over(node_restriction::admit(view, Some(object), asked))?;
        let plugin = admit("TaintNodesByCondition");
        node_taint::admit(object, asked);
        plugin.over(Ok(()))?;
        let plugin = admit("Priority");
        plugin.over(priority::admit(view, object, asked))?;
        let plugin = admit("DefaultTolerationSeconds");
        default_tolerations::admit(object, asked);
        plugin.over(Ok(()))?;
        if asked.resource.group == rbac::GROUP && asked.subresource.is_empty() {
            let plural = asked.resource.plural;
            escalation::check(&self.authorizer, asked.user, plural, object, asked.old)?;
        }
        Ok(())
    }

    /// After validation on create and update; the only call on delete and connect, without an
    /// object.
    pub fn validate(&self, object: Option<&Object>, asked: &Attributes<'_>) -> Result<(), Status> {
        if matches!(asked.operation, Operation::Delete | Operation::Connect) {
            let all = self.watch("", Step::Admit, asked);
            all.over(self.unmade(asked))?;
        }
        let all = self.watch("", Step::Validate, asked);
        all.over(self.validated(object, asked))
    }

    /// What may stop a delete or a connection.
    fn unmade(&self, asked: &Attributes<'_>) -> Result<(), Status> {
        let view = self.view.as_ref();
        let plugin = self.watch("NamespaceLifecycle", Step::Admit, asked);
        plugin.over(namespace_lifecycle::admit(view, None, asked))?;
        let plugin = self.watch("NodeRestriction", Step::Admit, asked);
        plugin.over(node_restriction::admit(view, None, asked))
    }

    fn validated(&self, object: Option<&Object>, asked: &Attributes<'_>) -> Result<(), Status> {
        let Some(object) = object else {
            return Ok(());
        };
        let validate = |plugin| self.watch(plugin, Step::Validate, asked);
        let plugin = validate("Priority");
        plugin.over(priority::validate(self.view.as_ref(), object, asked))?;
        let plugin = validate("CertificateApproval");
        plugin.over(certificates::approval(&self.authorizer, object, asked))?;
        let plugin = validate("CertificateSigning");
        plugin.over(certificates::signing(&self.authorizer, object, asked))?;
        let plugin = validate("CertificateSubjectRestriction");
        plugin.over(certificates::subject_restriction(object, asked))
    }

    /// Begins to measure a plugin; without a name, a step as a whole.
    fn watch(&self, plugin: &'static str, step: Step, asked: &Attributes<'_>) -> Stopwatch<'_> {
        Stopwatch {
            times: &self.times,
            plugin,
            step,
            operation: asked.operation,
            begun: Instant::now(),
        }
    }
}

struct Stopwatch<'a> {
    times: &'a Times,
    plugin: &'static str,
    step: Step,
    operation: Operation,
    begun: Instant,
}

impl Stopwatch<'_> {
    /// Counts the time until now, and passes the result on.
    fn over(self, result: Result<(), Status>) -> Result<(), Status> {
        let (elapsed, is_rejected) = (self.begun.elapsed(), result.is_err());
        let Self { plugin, step, .. } = self;
        self.times
            .add(plugin, step, self.operation, is_rejected, elapsed);
        result
    }
}

#[cfg(test)]
mod tests;
