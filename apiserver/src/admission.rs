//! Admission: what may still change or stop a write after it was authorized and decoded.
//!
//! Mutating plugins run before validation of the object, validating ones after it, each list in
//! upstream's order; trials (`dryRun`) go the whole way. Reads the store through a view, and writes
//! nothing but what ResourceQuota charges, in one commit with the object.

pub mod configuration; // What plugins are told by the operator's file.
pub mod plugin; // The plugins' names, order and operations. Start reading here.

pub mod certificates; // Who may approve and sign, and what may not be asked for.
pub mod default_classes; // Claims and ingresses that name no class get the default one.
pub mod default_tolerations; // Pods stay five minutes on a node that is lost.
pub mod limit_ranger; // What a container, pod or claim may ask for, and what it gets unasked.
pub mod lists; // What is asked about writes, kept beside the requests.
pub mod namespace_lifecycle; // Nothing is created in a namespace that is not there or ends.
pub mod node_restriction; // A node touches itself and its pods.
pub mod node_taint; // A new node starts not ready.
pub mod pod_resize; // A pod grows only as far as its node has room.
pub mod pod_security; // What pods may have of the node, by their namespace's level.
pub mod policy; // What policies of expressions say.
pub mod priority; // The number behind a priority class.
pub mod resource_quota; // Nothing is written that a quota has no room for.
pub mod revoked_certificates; // The list of revoked certificates can be read.
pub mod runtime_class; // What a pod's runtime needs beside its containers, and on which nodes.
pub mod service_account; // Every pod acts as a service account that is there.
pub mod storage; // Volumes in use stay, and grow only where their class lets them.
pub mod topology_labels; // A pod knows the zone and region of its node.
pub mod webhook; // What others change or say no to.

pub use configuration::Settings;
pub use pod_security::PodSecurity;

use crate::audit::Trail;
use crate::authenticate::User;
use crate::authorize::{Authorizer, escalation, rbac};
use crate::metrics::admission::{Step, Times};
use crate::options::DeleteOptions;
use crate::query::Query;
use crate::view::View;
use crate::warnings::Warnings;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject};
use plugin::Plugin;
use policy::Policies;
use std::sync::Arc;
use tokio::time::Instant;
use webhook::{Does, Turn, Webhooks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The request around an object. `name` and `namespace` are empty where there are none. On a
/// create `name` is the object's, and empty until one is generated.
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
    /// Where what the client should hear goes.
    pub warnings: &'a Warnings,
    /// The request's audit record.
    pub trail: Option<&'a Trail>,
    pub how: How<'a>,
    /// When the answer must be there.
    pub deadline: Option<Instant>,
}

/// What else the client said of the operation.
#[derive(Clone, Copy, Debug)]
pub enum How<'a> {
    /// The query of a write.
    Write(&'a Query),
    Deletion(&'a DeleteOptions),
    /// A query, and what of the path follows the subresource.
    Connection {
        query: &'a Query,
        path: &'a str,
    },
    Unsaid,
}

impl Attributes<'_> {
    pub fn warn(&self, texts: impl IntoIterator<Item = String>) {
        self.warnings.add(texts);
    }

    pub fn annotate(&self, key: &'static str, value: &str) {
        if let Some(trail) = self.trail {
            trail.annotate(key, value);
        }
    }

    /// The time of the request has run out.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// True for the resource itself, not a subresource of it.
    pub fn is_main(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.is(group, plural)
    }

    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }

    /// The namespace; of a namespace that is to be made, its name, as of those that are there.
    pub fn settled_namespace(&self) -> &str {
        if self.namespace.is_empty() && self.is("", "namespaces") {
            self.name
        } else {
            self.namespace
        }
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
    settings: Settings,
    times: Arc<Times>,
    pub webhooks: Arc<Webhooks>,
    pub policies: Arc<Policies>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl Chain {
    pub fn new(
        view: Arc<dyn View>,
        authorizer: Arc<Authorizer>,
        settings: Settings,
        webhooks: Arc<Webhooks>,
    ) -> Self {
        let converter = webhooks.converter();
        let policies = Policies::new(Arc::clone(&view), Arc::clone(&authorizer), converter);
        Self {
            view,
            authorizer,
            settings,
            times: Arc::default(),
            webhooks,
            policies: Arc::new(policies),
        }
    }

    /// How long it all took.
    pub fn times(&self) -> Arc<Times> {
        Arc::clone(&self.times)
    }

    /// Before validation, on create and update. `object` is the new state; for a subresource with
    /// a body of its own, that body.
    pub async fn mutate(&self, object: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
        let all = self.watch(None, Step::Admit, asked);
        all.over(self.mutated(object, asked).await)
    }

    async fn mutated(&self, object: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
        self.in_turns(Some(object), asked).await?;
        if asked.resource.group == rbac::GROUP && asked.subresource.is_empty() {
            let plural = asked.resource.plural;
            escalation::check(&self.authorizer, asked.user, plural, object, asked.old)?;
        }
        Ok(())
    }

    /// All that may change an object; once more when a webhook changed it.
    async fn in_turns(
        &self,
        mut object: Option<&mut Object>,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let mut turn = Turn::default();
        let mut ruled = policy::Turn::default();
        loop {
            for plugin in self.asked(Plugin::MUTATING, asked) {
                let one = self.watch(Some(plugin), Step::Admit, asked);
                let object = object.as_deref_mut();
                one.over(match plugin {
                    Plugin::MutatingAdmissionPolicy => {
                        Box::pin(self.policies.mutate(object, asked, &mut ruled)).await
                    }
                    Plugin::MutatingAdmissionWebhook => {
                        Box::pin(self.webhooks.mutate(object, asked, &mut turn)).await
                    }
                    plugin => self.admit(plugin, object, asked).await,
                })?;
            }
            if !turn.again(ruled.again()) {
                return Ok(());
            }
        }
    }

    /// After validation, on create and update.
    pub async fn validate(&self, object: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
        let all = self.watch(None, Step::Validate, asked);
        all.over(self.judged(object, asked).await)
    }

    async fn judged(&self, object: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
        revoked_certificates::check(object, asked)?;
        self.each_judges(Some(object), asked).await
    }

    async fn each_judges(
        &self,
        object: Option<&Object>,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        for plugin in self.asked(Plugin::VALIDATING, asked) {
            let one = self.watch(Some(plugin), Step::Validate, asked);
            one.over(match (plugin, object) {
                (Plugin::ValidatingAdmissionPolicy, object) => {
                    Box::pin(self.policies.judge(object, asked)).await
                }
                (Plugin::ValidatingAdmissionWebhook, object) => {
                    Box::pin(self.webhooks.judge(object, asked)).await
                }
                (_, None) => Ok(()),
                (plugin, Some(object)) => self.judge(plugin, object, asked).await,
            })?;
        }
        Ok(())
    }

    /// After validation and all else, on create and update: what `charge` says of the quotas.
    /// `None` when they are not asked.
    pub async fn quotas<T>(
        &self,
        asked: &Attributes<'_>,
        charge: impl Future<Output = Result<T, Status>>,
    ) -> Result<Option<T>, Status> {
        if self.settings.disabled.contains(&Plugin::ResourceQuota) {
            return Ok(None);
        }
        let one = self.watch(Some(Plugin::ResourceQuota), Step::Validate, asked);
        one.over(charge.await.map(Some))
    }

    /// The only call on delete and connect, which have no object.
    pub async fn pass(&self, asked: &Attributes<'_>) -> Result<(), Status> {
        let all = self.watch(None, Step::Admit, asked);
        all.over(self.in_turns(None, asked).await)?;
        let all = self.watch(None, Step::Validate, asked);
        all.over(self.each_judges(None, asked).await)
    }

    /// Those of a list that look at such a request.
    fn asked(
        &self,
        plugins: &'static [Plugin],
        asked: &Attributes<'_>,
    ) -> impl Iterator<Item = Plugin> {
        let enabled = plugins.iter().copied();
        let enabled = enabled.filter(|plugin| !self.settings.disabled.contains(plugin));
        enabled.filter(move |plugin| match plugin {
            Plugin::MutatingAdmissionWebhook => self.webhooks.concerns(Does::Mutate, asked),
            Plugin::ValidatingAdmissionWebhook => self.webhooks.concerns(Does::Judge, asked),
            Plugin::ValidatingAdmissionPolicy => self.policies.concerns(policy::Does::Judge, asked),
            Plugin::MutatingAdmissionPolicy => {
                plugin.handles(asked.operation)
                    && self.policies.concerns(policy::Does::Mutate, asked)
            }
            plugin => plugin.handles(asked.operation),
        })
    }

    /// One plugin's turn before validation.
    async fn admit(
        &self,
        plugin: Plugin,
        object: Option<&mut Object>,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let view = self.view.as_ref();
        match (plugin, object) {
            (Plugin::NamespaceLifecycle, object) => {
                namespace_lifecycle::admit(view, object.as_deref(), asked)
            }
            (Plugin::NodeRestriction, object) => {
                node_restriction::admit(view, &self.authorizer, object.as_deref(), asked)
            }
            (_, None) => Ok(()),
            (plugin, Some(object)) => self.fill_in(plugin, object, asked).await,
        }
    }

    async fn fill_in(
        &self,
        plugin: Plugin,
        object: &mut Object,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let view = self.view.as_ref();
        match plugin {
            Plugin::LimitRanger => limit_ranger::admit(view, object, asked),
            Plugin::ServiceAccount => return service_account::admit(view, object, asked).await,
            Plugin::TaintNodesByCondition => node_taint::admit(object, asked),
            Plugin::Priority => return priority::admit(view, object, asked),
            Plugin::DefaultTolerationSeconds => default_tolerations::admit(object, asked),
            Plugin::DefaultStorageClass => default_classes::of_claim(view, object, asked),
            Plugin::StorageObjectInUseProtection => storage::protect(object, asked),
            Plugin::RuntimeClass => return runtime_class::admit(view, object, asked),
            Plugin::DefaultIngressClass => default_classes::of_ingress(view, object, asked),
            Plugin::PodTopologyLabels => topology_labels::admit(view, object, asked),
            _ => {}
        }
        Ok(())
    }

    /// One plugin's turn after validation.
    async fn judge(
        &self,
        plugin: Plugin,
        object: &Object,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let view = self.view.as_ref();
        let authorizer = self.authorizer.as_ref();
        match plugin {
            Plugin::LimitRanger => limit_ranger::validate(view, object, asked),
            Plugin::ServiceAccount => service_account::validate(view, object, asked).await,
            Plugin::PodSecurity => self.settings.pod_security.validate(view, object, asked),
            Plugin::Priority => priority::validate(view, object, asked),
            Plugin::PersistentVolumeClaimResize => storage::may_grow(view, object, asked),
            Plugin::RuntimeClass => runtime_class::validate(view, object, asked),
            Plugin::CertificateApproval => certificates::approval(authorizer, object, asked),
            Plugin::CertificateSigning => certificates::signing(authorizer, object, asked),
            Plugin::CertificateSubjectRestriction => {
                certificates::subject_restriction(object, asked)
            }
            Plugin::PodResizeValidator => pod_resize::validate(view, object, asked),
            _ => Ok(()),
        }
    }
}

impl Chain {
    /// Begins to measure a plugin; without one, a step as a whole.
    fn watch(&self, plugin: Option<Plugin>, step: Step, asked: &Attributes<'_>) -> Stopwatch<'_> {
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
    plugin: Option<Plugin>,
    step: Step,
    operation: Operation,
    begun: Instant,
}

impl Stopwatch<'_> {
    /// Counts the time until now, and passes the result on.
    fn over<T>(self, result: Result<T, Status>) -> Result<T, Status> {
        let (elapsed, is_rejected) = (self.begun.elapsed(), result.is_err());
        let Self { plugin, step, .. } = self;
        self.times
            .add(plugin, step, self.operation, is_rejected, elapsed);
        result
    }
}

#[cfg(test)]
pub mod tests;
