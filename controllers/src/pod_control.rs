//! Creates and deletes the pods of a controller, with upstream's events, and keeps account of what
//! the cache is still to show.

use coracle_client::ObjectKey;
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::expectations::Expectations;
use coracle_client::informer::Kind;
use coracle_client::patch;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;

use crate::ownership::controller_reference;
use crate::refusal;

/// The first batch of creations; each batch that succeeds doubles the next. A cause that fails
/// one pod fails them all, and is then found out with one request.
const FIRST_BATCH: usize = 1;
/// The longest a generated name's prefix may be, for the name to fit with its suffix.
const PREFIX_LENGTH_MAX: usize = 253;

/// What one pass writes with.
pub(crate) struct PodControl<'a, K> {
    pub key: &'a ObjectKey,
    pub owner: &'a K,
    pub pods: &'a Api<Pod>,
    pub expectations: &'a Expectations,
    pub recorder: &'a Recorder,
}

impl<K: Kind> PodControl<'_, K> {
    /// Creates in batches that double, and stops after one that failed. The pods must be
    /// expected; what was not created is not expected any more afterwards.
    pub(crate) async fn create(
        &self,
        count: usize,
        pod: impl Fn(usize) -> Pod,
    ) -> Result<(), kube::Error> {
        self.create_counted(count, pod).await.1
    }

    /// The same, and says how many there are now.
    pub(crate) async fn create_counted(
        &self,
        count: usize,
        pod: impl Fn(usize) -> Pod,
    ) -> (usize, Result<(), kube::Error>) {
        let (mut created, mut tried, mut batch) = (0, 0, FIRST_BATCH);
        let mut failure = None;
        while tried < count && failure.is_none() {
            let end = count.min(tried + batch);
            let creations = (tried..end).map(|number| self.create_one(pod(number)));
            for outcome in join_all(creations).await {
                match outcome {
                    Ok(()) => created += 1,
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            tried = end;
            batch *= 2;
        }
        // What was not created will not be seen either.
        self.expectations
            .creations_observed(self.key, count - created);
        (created, failure.map_or(Ok(()), Err))
    }

    async fn create_one(&self, pod: Pod) -> Result<(), kube::Error> {
        match self.pods.create(&PostParams::default(), &pod).await {
            Ok(created) => {
                let name = created.metadata.name.unwrap_or_default();
                let message = format!("Created pod: {name}");
                self.tell(EventType::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            // Counts as done: no pod can be made here any more, and none is needed.
            Err(error) if refusal::is_namespace_terminating(&error) => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", refusal::message(&error));
                self.tell(EventType::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    /// Deletes all of them, which must be expected; tells the first failure.
    pub(crate) async fn delete<'p>(
        &self,
        pods: impl Iterator<Item = &'p Pod>,
    ) -> Result<(), kube::Error> {
        let outcomes = join_all(pods.map(|pod| self.delete_one(pod))).await;
        outcomes.into_iter().collect()
    }

    /// One that is gone already counts as deleted.
    pub(crate) async fn delete_one(&self, pod: &Pod) -> Result<(), kube::Error> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Err(error) = self.pods.delete(name, &patch::delete_exactly(pod)).await else {
            let message = format!("Deleted pod: {name}");
            self.tell(EventType::Normal, "SuccessfulDelete", message);
            return Ok(());
        };
        self.not_deleted(pod);
        if refusal::is_not_found(&error) {
            return Ok(());
        }
        let message = format!("Error deleting: {}", refusal::message(&error));
        self.tell(EventType::Warning, "FailedDelete", message);
        Err(error)
    }

    /// Its deletion will not be seen, or was seen already.
    pub(crate) fn not_deleted(&self, pod: &Pod) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        self.expectations.deletion_observed(self.key, uid);
    }

    fn tell(&self, event_type: EventType, reason: &str, message: String) {
        let about = events::reference(self.owner);
        self.recorder.event(&about, event_type, reason, message);
    }
}

/// The pod that a controller's template describes.
pub(crate) fn pod_from<K: Kind>(owner: &K, template: &PodTemplateSpec) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    let name = owner.meta().name.as_deref().unwrap_or_default();
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
            owner_references: Some(vec![controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
