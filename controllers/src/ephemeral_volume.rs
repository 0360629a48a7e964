//! Makes the claims for the ephemeral volumes of pods, which the pods own: they go with them.
//!
//! Reads pods and claims; creates claims. A claim of the name that is not the pod's is left alone,
//! and the pod waits until it is gone.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of, pod_claims};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;

use crate::ownership::{controller_reference, is_controlled_by};
use crate::{Context, pods, refusal};

/// As upstream.
const WORKERS: usize = 5;
const LOOP: &str = "ephemeral-volume";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "ephemeral_volume";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        pods: context.informers.get(),
        claims: context.informers.get(),
        queue: WorkQueue::new(),
        recorder: context.recorder(COMPONENT),
    });
    controller.watch();
    if !controller.pods.synced().await || !controller.claims.synced().await {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.pods.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(LOOP, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")]
    NotOwner {
        namespace: String,
        claim: String,
        pod: String,
    },
    #[error("create PVC {claim}: {}", refusal::message(.source))]
    Create { claim: String, source: kube::Error },
}

impl Controller {
    /// What a pod wants never changes, so that its changes do not matter; that a claim went does.
    fn watch(self: &Arc<Self>) {
        self.pods
            .add_index(pod_claims::BY_CLAIM, pod_claims::claims_of);
        let told = Arc::clone(self);
        self.pods.on_change(move |change| {
            if matches!(change, Change::Added(_) | Change::Resync(_)) {
                told.add(change.object());
            }
        });
        let told = Arc::clone(self);
        self.claims.on_change(move |change| {
            if let Change::Deleted(claim) = change {
                let key = key_of(claim.as_ref());
                let index = pod_claims::index(&key.namespace, &key.name);
                for pod in told.pods.by_index(pod_claims::BY_CLAIM, &index) {
                    told.add(&pod);
                }
            }
        });
    }

    fn add(&self, pod: &Arc<Pod>) {
        if !pods::is_deleting(pod) && wanted(pod).next().is_some() {
            self.queue.add(key_of(pod.as_ref()));
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(pod) = self.pods.get(key).filter(|pod| !pods::is_deleting(pod)) else {
            return Ok(Requeue::Never);
        };
        for (volume, claim) in wanted(&pod) {
            if let Err(error) = self.make(&pod, &claim).await {
                let message = format!("ephemeral volume {volume}: {error}");
                let about = events::reference(pod.as_ref());
                self.recorder
                    .event(&about, EventType::Warning, "FailedBinding", message);
                return Err(error);
            }
        }
        Ok(Requeue::Never)
    }

    async fn make(&self, pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), ReconcileError> {
        let key = key_of(claim);
        let found = match self.claims.get(&key) {
            Some(known) => known.metadata.clone(),
            None => {
                let api = Api::namespaced(self.client.clone(), &key.namespace);
                let failed = |source| ReconcileError::Create {
                    claim: key.name.clone(),
                    source,
                };
                match api.create(&PostParams::default(), claim).await {
                    Ok(_) => return Ok(()),
                    Err(error) if refusal::is_namespace_terminating(&error) => return Ok(()),
                    // Perhaps made a moment ago, by this loop.
                    Err(error) if refusal::is_already_exists(&error) => {
                        api.get_metadata(&key.name).await.map_err(failed)?.metadata
                    }
                    Err(source) => return Err(failed(source)),
                }
            }
        };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if is_controlled_by(&found, uid) {
            return Ok(());
        }
        Err(ReconcileError::NotOwner {
            namespace: key.namespace,
            claim: key.name,
            pod: pod.metadata.name.clone().unwrap_or_default(),
        })
    }
}

/// The ephemeral volumes of a pod and the claims for them. Pure.
fn wanted(pod: &Pod) -> impl Iterator<Item = (&str, PersistentVolumeClaim)> {
    pod_claims::volumes(pod).filter_map(|volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        let meta = template.metadata.as_ref();
        let claim = PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: pod_claims::made(pod, volume),
                namespace: pod.metadata.namespace.clone(),
                owner_references: Some(vec![controller_reference(pod)]),
                annotations: meta.and_then(|meta| meta.annotations.clone()),
                labels: meta.and_then(|meta| meta.labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(template.spec.clone()),
            status: None,
        };
        Some((volume.name.as_str(), claim))
    })
}

#[cfg(test)]
mod tests;
