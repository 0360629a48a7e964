//! Carries out a plan: creations, then updates, then deletions, one family after the other.

use coracle_client::ObjectKey;
use coracle_client::events;
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::plan::{Changes, Plan};
use super::{Controller, slice};
use crate::endpoint_slices::Writer;
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
        let writer = Writer::new(&self.client, service.namespace(), &self.tracker);
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
            let written = write(&writer, service, family.changes, changed_at).await;
            failures.extend(written.err());
            for event in family.events {
                let about = events::reference(service);
                self.recorder
                    .event(&about, event.kind, event.reason, event.message);
            }
        }
        for slice in &plan.other_families {
            let deleted = delete(&writer, service, slice, "error deleting").await;
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
}

async fn write(
    writer: &Writer<'_>,
    service: &Service,
    changes: Changes,
    changed_at: Option<Timestamp>,
) -> Result<(), Failure> {
    // What goes with its Service is not made anew: the garbage collector would race with it.
    let is_going = service.metadata.deletion_timestamp.is_some();
    for mut slice in changes.create.into_iter().filter(|_| !is_going) {
        annotate(&mut slice.metadata, changed_at);
        let created = writer.create(&slice).await;
        let what = "failed to create EndpointSlice";
        if !created.map_err(|source| failed(service, what, source))? {
            return Ok(());
        }
    }
    for mut slice in changes.update {
        annotate(&mut slice.metadata, changed_at);
        let updated = writer.update(&slice).await;
        updated.map_err(|source| {
            let name = slice.metadata.name.unwrap_or_default();
            failed(
                service,
                &format!("failed to update {name} EndpointSlice"),
                source,
            )
        })?;
    }
    for slice in &changes.delete {
        delete(writer, service, slice, "failed to delete").await?;
    }
    Ok(())
}

async fn delete(
    writer: &Writer<'_>,
    service: &Service,
    slice: &EndpointSlice,
    failure: &str,
) -> Result<(), Failure> {
    writer.delete(slice).await.map_err(|source| {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        failed(service, &format!("{failure} {name} EndpointSlice"), source)
    })
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
