//! Binds claims to volumes, and says of both what became of it.
//!
//! Reads claims, volumes, storage classes, and pods that wait for claims; writes claims, volumes
//! and their status. A binding is four writes, the volume's first: whoever has the volume has won,
//! and a pass that ends between two of them is finished by the next. Makes and deletes no storage:
//! that is a provisioner's work, which is asked for and told of by annotations.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::Recorder;
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, pod_claims, volumes};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;

use crate::{Context, pods, refusal};

mod claims; // What to do about a claim. Pure. Start reading here.
mod execute;
mod migration; // Which drivers do the work of what was once built in.
mod plan; // What a pass wants written and told.
mod reclaim; // What becomes of a volume whose claim is gone. Pure.
mod told; // Events in upstream's words.
mod unclaimed; // What to do about a volume. Pure.
mod watch;

use claims::ClaimView;
pub(crate) use migration::driver;

/// As upstream: two claims that are looked at at once would run for the same volume.
const WORKERS: usize = 1;
const CLAIMS_LOOP: &str = "persistentvolume-binder";
const VOLUMES_LOOP: &str = "persistentvolume-binder-volumes";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "persistentvolume-controller";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        claims: context.informers.get(),
        volumes: context.informers.get(),
        classes: context.informers.get(),
        pods: context.informers.get(),
        claim_queue: WorkQueue::new(),
        volume_queue: WorkQueue::new(),
        recorder: context.recorder(COMPONENT),
    });
    controller.watch();
    let synced = controller.claims.synced().await
        && controller.volumes.synced().await
        && controller.classes.synced().await
        && controller.pods.synced().await;
    if !synced {
        return;
    }
    let (of_claims, of_volumes) = (
        controller.claim_queue.clone(),
        controller.volume_queue.clone(),
    );
    let recorder = || controller.recorder.clone();
    let bind = control_loop::with(controller.clone(), |it, key| {
        Box::pin(it.look_at_claim(key))
    })
    .telling(controller.claims.clone(), recorder());
    let keep = control_loop::with(controller.clone(), |it, key| {
        Box::pin(it.look_at_volume(key))
    })
    .telling(controller.volumes.clone(), recorder());
    let shutdown = context.shutdown.clone();
    tokio::join!(
        control_loop::run(CLAIMS_LOOP, of_claims, WORKERS, bind, shutdown),
        control_loop::run(VOLUMES_LOOP, of_volumes, WORKERS, keep, context.shutdown),
    );
}

struct Controller {
    client: Client,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    classes: Informer<StorageClass>,
    pods: Informer<Pod>,
    claim_queue: WorkQueue<ObjectKey>,
    volume_queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot read the other side of the binding")]
    Read(#[source] kube::Error),
    #[error("cannot write the volume")]
    Volume(#[source] kube::Error),
    #[error("cannot write the claim")]
    Claim(#[source] kube::Error),
}

impl Controller {
    async fn look_at_claim(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(claim) = self.claims.get(key) else {
            return Ok(Requeue::Never); // The watch of claims sees to its volumes.
        };
        let named = volumes::volume_name(&claim);
        let mut view = self.view(key, &claim);
        let mut plan = claims::plan(&view);
        if plan.loses_claim() && !named.is_empty() {
            // Nothing undoes a loss, and the copy of the volumes may be older than the claim's.
            view.named = self.live_volume(named).await?;
            plan = claims::plan(&view);
        }
        settled(Box::pin(self.execute(plan)).await)
    }

    fn view<'a>(&self, key: &ObjectKey, claim: &'a PersistentVolumeClaim) -> ClaimView<'a> {
        let named = volumes::volume_name(claim);
        let is_open = named.is_empty();
        let class = volumes::class_of_claim(claim);
        let classes = if is_open {
            self.classes.list()
        } else {
            Vec::new()
        };
        let default = volumes::default_class(&classes);
        ClaimView {
            claim,
            named: self.volumes.get(&ObjectKey::new("", named)),
            volumes: if is_open {
                self.volumes.list()
            } else {
                Vec::new()
            },
            class: self.classes.get(&ObjectKey::new("", class)),
            default_class: default.and_then(|class| class.metadata.name.clone()),
            waiting: self.waiting_pods(key),
        }
    }

    /// Names of the pods that use a claim and are on no node yet.
    fn waiting_pods(&self, claim: &ObjectKey) -> Vec<String> {
        let index = pod_claims::index(&claim.namespace, &claim.name);
        let mut users = self.pods.by_index(pod_claims::BY_CLAIM, &index);
        users.retain(|pod| !pods::is_finished(pod) && pods::node_name(pod).is_empty());
        let names = users.iter().filter_map(|pod| pod.metadata.name.clone());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    async fn look_at_volume(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(volume) = self.volumes.get(key) else {
            return Ok(Requeue::Never);
        };
        let claim = self.claim_of(&volume).await?;
        let plan = unclaimed::plan(&volume, claim.as_deref());
        settled(Box::pin(self.execute(plan)).await)
    }

    /// The claim that a volume is bound to, if it is still that one. The copy of the claims may be
    /// older than the volume: that a claim is gone is believed of the server alone.
    async fn claim_of(
        &self,
        volume: &PersistentVolume,
    ) -> Result<Option<Arc<PersistentVolumeClaim>>, ReconcileError> {
        let Some(held) = volumes::claim_ref(volume) else {
            return Ok(None);
        };
        let uid = held.uid.as_deref().unwrap_or_default();
        if uid.is_empty() {
            return Ok(None); // Held by name; the claim's own pass binds it.
        }
        let namespace = held.namespace.as_deref().unwrap_or_default();
        let name = held.name.as_deref().unwrap_or_default();
        let is_it = |claim: &PersistentVolumeClaim| claim.metadata.uid.as_deref() == Some(uid);
        match self.claims.get(&ObjectKey::new(namespace, name)) {
            Some(claim) if is_it(&claim) => return Ok(Some(claim)),
            None if plan::is_released(volume) => return Ok(None),
            _ => {}
        }
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let live = api.get_opt(name).await.map_err(ReconcileError::Read)?;
        Ok(live.filter(is_it).map(Arc::new))
    }

    async fn live_volume(
        &self,
        name: &str,
    ) -> Result<Option<Arc<PersistentVolume>>, ReconcileError> {
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        let live = api.get_opt(name).await.map_err(ReconcileError::Read)?;
        Ok(live.map(Arc::new))
    }
}

/// What is gone needs nothing more.
fn settled(written: Result<(), ReconcileError>) -> Result<Requeue, ReconcileError> {
    match written {
        Err(ReconcileError::Volume(error) | ReconcileError::Claim(error))
            if refusal::is_not_found(&error) =>
        {
            Ok(Requeue::Never)
        }
        other => other.map(|()| Requeue::Never),
    }
}

#[cfg(test)]
mod tests;
