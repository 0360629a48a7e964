//! Carries out a plan: creations, then updates, then deletions, one family after the other.

use coracle_client::ObjectKey;
use coracle_client::events;
use coracle_client::patch;
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::PostParams;

use super::plan::{Changes, Plan};
use super::{Controller, slice};
use crate::refusal;
use crate::services::Service;
use crate::trigger_time::annotate;

/// Everything that went wrong in one pass; one family's failure does not hold up the other.
#[derive(Debug, thiserror::Error)]
#[error("the slices of a Service are not what they should be")]
pub(super) struct ReconcileError {
    /// The first.
    source: Failure,
    others: Vec<Failure>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("skipping Pod {pod} for Service {service}: Node {node} Not Found")]
    MissingNode {
        pod: String,
        service: String,
        node: String,
    },
    #[error("cannot read the slices of {service}")]
    Read {
        service: String,
        source: kube::Error,
    },
    #[error("{what} for Service {service}")]
    Write {
        /// Such as `failed to update web-abcde EndpointSlice`.
        what: String,
        service: String,
        source: kube::Error,
    },
}

impl Failure {
    /// With the server's words, as events say it.
    fn message(&self) -> String {
        match self {
            Self::MissingNode { .. } => self.to_string(),
            Self::Read { source, .. } | Self::Write { source, .. } => {
                format!("{self}: {}", refusal::message(source))
            }
        }
    }
}

impl ReconcileError {
    pub(super) fn read(key: &ObjectKey, source: kube::Error) -> Self {
        let service = key.to_string();
        Self {
            source: Failure::Read { service, source },
            others: Vec::new(),
        }
    }

    /// Each thing once, in brackets when there are several.
    pub(super) fn message(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        for failure in std::iter::once(&self.source).chain(&self.others) {
            let message = failure.message();
            if !said.contains(&message) {
                said.push(message);
            }
        }
        match said.as_slice() {
            [only] => only.clone(),
            all => format!("[{}]", all.join(", ")),
        }
    }
}

impl Controller {
    pub(super) async fn execute(
        &self,
        service: &Service,
        plan: Plan,
        changed_at: Option<Timestamp>,
    ) -> Result<(), ReconcileError> {
        let mut failures = Vec::new();
        let slices = Api::namespaced(self.client.clone(), service.namespace());
        for mut family in plan.families {
            failures.extend(
                family
                    .missing_nodes
                    .into_iter()
                    .map(|missing| Failure::MissingNode {
                        pod: missing.pod,
                        service: service.text(),
                        node: missing.node,
                    }),
            );
            recycle(service, &mut family.changes);
            let written = self.write(service, &slices, family.changes, changed_at);
            failures.extend(written.await.err());
            for event in family.events {
                let about = events::reference(service);
                self.recorder
                    .event(&about, event.kind, event.reason, event.message);
            }
        }
        for slice in &plan.other_families {
            let deleted = self.delete(service, &slices, slice, "error deleting").await;
            failures.extend(deleted.err());
        }
        let mut failures = failures.into_iter();
        match failures.next() {
            None => Ok(()),
            Some(source) => Err(ReconcileError {
                source,
                others: failures.collect(),
            }),
        }
    }

    async fn write(
        &self,
        service: &Service,
        slices: &Api<EndpointSlice>,
        changes: Changes,
        changed_at: Option<Timestamp>,
    ) -> Result<(), Failure> {
        // What goes with its Service is not made anew: the garbage collector would race with it.
        let is_going = service.metadata.deletion_timestamp.is_some();
        for mut slice in changes.create.into_iter().filter(|_| !is_going) {
            annotate(&mut slice.metadata, changed_at);
            match slices.create(&PostParams::default(), &slice).await {
                Ok(created) => self.tracker.wrote(&created),
                Err(error) if refusal::is_namespace_terminating(&error) => return Ok(()),
                Err(source) => {
                    return Err(failed(service, "failed to create EndpointSlice", source));
                }
            }
        }
        for mut slice in changes.update {
            annotate(&mut slice.metadata, changed_at);
            match patch::replace(slices, &slice).await {
                Ok(updated) => self.tracker.wrote(&updated),
                Err(source) => {
                    let name = slice.metadata.name.unwrap_or_default();
                    let what = format!("failed to update {name} EndpointSlice");
                    return Err(failed(service, &what, source));
                }
            }
        }
        for slice in &changes.delete {
            self.delete(service, slices, slice, "failed to delete")
                .await?;
        }
        Ok(())
    }

    async fn delete(
        &self,
        service: &Service,
        slices: &Api<EndpointSlice>,
        slice: &EndpointSlice,
        failure: &str,
    ) -> Result<(), Failure> {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        self.tracker.deleting(slice);
        match slices.delete(name, &patch::delete_exactly(slice)).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(source) => {
                self.tracker.wrote(slice);
                let what = format!("{failure} {name} EndpointSlice");
                Err(failed(service, &what, source))
            }
        }
    }
}

fn failed(service: &Service, what: &str, source: kube::Error) -> Failure {
    Failure::Write {
        what: what.to_owned(),
        service: service.text(),
        source,
    }
}

/// A slice that goes takes the place of one that would be made: one write instead of two.
pub(super) fn recycle(service: &Service, changes: &mut Changes) {
    let going = std::mem::take(&mut changes.delete);
    for old in going {
        let is_fit = |new: &mut EndpointSlice| {
            new.address_type == old.address_type && slice::is_owned_by(&old, service)
        };
        match changes.create.pop_if(is_fit) {
            Some(mut new) => {
                new.metadata.name.clone_from(&old.metadata.name);
                changes.update.push(new);
            }
            None => changes.delete.push(old),
        }
    }
}
