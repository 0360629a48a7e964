//! Carries out a plan: claims, creations or deletions, and the status.

use std::sync::Arc;

use coracle_client::events::{self, EventType};
use coracle_client::patch;
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;

use super::kind::{Replicated, Spec};
use super::plan::Plan;
use super::{Controller, ObjectKey, Requeue, status};
use crate::ownership::{self, ClaimError, controller_reference};
use crate::refusal;

/// The first batch of creations; each batch that succeeds doubles the next. A cause that fails
/// one pod fails them all, and is then found out with one request.
const FIRST_BATCH: usize = 1;
/// The longest a generated name's prefix may be, for the name to fit with its suffix.
const PREFIX_LENGTH_MAX: usize = 253;

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot create pods")]
    Create(#[source] kube::Error),
    #[error("cannot delete pods")]
    Delete(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

impl<K: Replicated> Controller<K> {
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        set: &Arc<K>,
        spec: &Spec<'_>,
        plan: Plan,
        now: Timestamp,
    ) -> Result<Requeue, ReconcileError> {
        let sets = Api::<K>::namespaced(self.client.clone(), &key.namespace);
        let pods = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        ownership::execute(&sets, set.as_ref(), &pods, &plan.adopt, &plan.release).await?;
        let managed = self.manage(key, set, spec, &plan, &pods).await;
        let failure = managed.as_ref().err().map(failure_text);
        let next = status::next(set.as_ref(), spec, &plan, failure.as_deref(), now);
        if next != set.status() {
            let written = patch::replace_status(&sets, &set.with_status(next)).await;
            written.map_err(ReconcileError::Status)?;
        }
        managed?;
        let check = status::next_check(&plan.active, spec.min_ready_seconds, now);
        Ok(check.map_or(Requeue::Never, Requeue::After))
    }

    async fn manage(
        &self,
        key: &ObjectKey,
        set: &Arc<K>,
        spec: &Spec<'_>,
        plan: &Plan,
        pods: &Api<Pod>,
    ) -> Result<(), ReconcileError> {
        if plan.create > 0 {
            self.expectations.expect_creations(key, plan.create);
            let (created, outcome) = self.create(set, spec, plan.create, pods).await;
            // What was not created will not be seen either.
            self.expectations
                .creations_observed(key, plan.create - created);
            outcome.map_err(ReconcileError::Create)?;
        }
        if !plan.delete.is_empty() {
            let uids = plan
                .delete
                .iter()
                .filter_map(|pod| pod.metadata.uid.clone());
            self.expectations.expect_deletions(key, uids);
            let deletions = plan
                .delete
                .iter()
                .map(|pod| self.delete_one(key, set, pod, pods));
            let outcomes = join_all(deletions).await;
            outcomes
                .into_iter()
                .collect::<Result<(), _>>()
                .map_err(ReconcileError::Delete)?;
        }
        Ok(())
    }

    /// Creates in batches that double. Returns how many were made, and what stopped it.
    async fn create(
        &self,
        set: &Arc<K>,
        spec: &Spec<'_>,
        count: usize,
        pods: &Api<Pod>,
    ) -> (usize, Result<(), kube::Error>) {
        let pod = pod_from(set.as_ref(), spec);
        let (mut created, mut batch) = (0, FIRST_BATCH);
        while created < count {
            let size = batch.min(count - created);
            let outcomes = join_all((0..size).map(|_| self.create_one(set, &pod, pods))).await;
            let mut failure = None;
            for outcome in outcomes {
                match outcome {
                    Ok(()) => created += 1,
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if let Some(error) = failure {
                return (created, Err(error));
            }
            batch *= 2;
        }
        (created, Ok(()))
    }

    async fn create_one(
        &self,
        set: &Arc<K>,
        pod: &Pod,
        pods: &Api<Pod>,
    ) -> Result<(), kube::Error> {
        let about = events::reference(set.as_ref());
        match pods.create(&PostParams::default(), pod).await {
            Ok(created) => {
                let name = created.metadata.name.unwrap_or_default();
                let message = format!("Created pod: {name}");
                self.recorder
                    .event(&about, EventType::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            // Counts as done: no pod can be made here any more, and none is needed.
            Err(error) if refusal::is_namespace_terminating(&error) => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", refusal::message(&error));
                self.recorder
                    .event(&about, EventType::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    async fn delete_one(
        &self,
        key: &ObjectKey,
        set: &Arc<K>,
        pod: &Pod,
        pods: &Api<Pod>,
    ) -> Result<(), kube::Error> {
        let about = events::reference(set.as_ref());
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Err(error) = pods.delete(name, &patch::delete_exactly(pod)).await else {
            let message = format!("Deleted pod: {name}");
            self.recorder
                .event(&about, EventType::Normal, "SuccessfulDelete", message);
            return Ok(());
        };
        // Its deletion will not be seen, or was seen already.
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        self.expectations.deletion_observed(key, uid);
        if refusal::is_not_found(&error) {
            return Ok(());
        }
        let message = format!("Error deleting: {}", refusal::message(&error));
        self.recorder
            .event(&about, EventType::Warning, "FailedDelete", message);
        Err(error)
    }
}

/// The pod that a set's template describes.
fn pod_from<K: Replicated>(set: &K, spec: &Spec<'_>) -> Pod {
    let meta = spec.template.metadata.clone().unwrap_or_default();
    let name = set.meta().name.as_deref().unwrap_or_default();
    let dashed = name.len() < PREFIX_LENGTH_MAX;
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(if dashed {
                format!("{name}-")
            } else {
                name.to_owned()
            }),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![controller_reference(set)]),
            ..ObjectMeta::default()
        },
        spec: spec.template.spec.clone(),
        status: None,
    }
}

/// What the condition says about a failure.
fn failure_text(error: &ReconcileError) -> String {
    match error {
        ReconcileError::Create(source) => refusal::message(source),
        ReconcileError::Delete(source) => {
            format!("unable to delete pods: {}", refusal::message(source))
        }
        other => other.to_string(),
    }
}
