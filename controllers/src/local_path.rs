//! Makes volumes of directories on nodes, and has the directories removed when they are no longer
//! wanted.
//!
//! Reads claims, volumes, storage classes and nodes; writes volumes, and of claims the node that
//! is not the right one; asks nodes to remove directories. A directory is made by its node when
//! the first pod comes; nothing here touches a disk. What is in a directory is lost only after its
//! volume is being deleted, and its policy is still `Delete`, as the server says at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::volumes::{self, SELECTED_NODE};
use coracle_client::{Client, ObjectKey, patch};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::PostParams;

use crate::{Context, refusal};

mod plan; // What to do about a claim or a volume. Pure. Start reading here.
mod watch;

use plan::{End, Provision, Removal};

/// Each waits for a node to have removed a directory.
const WORKERS: usize = 4;
const CLAIMS_LOOP: &str = "local-path";
const VOLUMES_LOOP: &str = "local-path-volumes";
const CLASS_LOOP: &str = "local-path-class";
const COMPONENT: &str = "local-path-provisioner";
/// A node that has not removed a directory by then is asked again; it goes on meanwhile.
const REMOVAL_MAX: Duration = Duration::from_secs(300);
/// Between two looks at a node that is away; its return comes first.
const AWAY: Duration = Duration::from_secs(60);

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        claims: context.informers.get(),
        volumes: context.informers.get(),
        classes: context.informers.get(),
        nodes: context.informers.get(),
        claim_queue: WorkQueue::new(),
        volume_queue: WorkQueue::new(),
        class_queue: WorkQueue::new(),
        has_class: AtomicBool::new(false),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    controller.watch();
    let synced = controller.claims.synced().await
        && controller.volumes.synced().await
        && controller.classes.synced().await
        && controller.nodes.synced().await;
    if !synced {
        return;
    }
    let of_claims = controller.claim_queue.clone();
    let of_volumes = controller.volume_queue.clone();
    let of_class = controller.class_queue.clone();
    let recorder = || controller.recorder.clone();
    let make = control_loop::with(controller.clone(), |it, key| Box::pin(it.provision(key)))
        .telling(controller.claims.clone(), recorder());
    let end = control_loop::with(controller.clone(), |it, key| Box::pin(it.end(key)))
        .telling(controller.volumes.clone(), recorder());
    let class = control_loop::with(controller.clone(), |it, _| Box::pin(it.make_class()))
        .telling_of(recorder(), |_| [events::reference(&plan::class(false))]);
    let stop = || context.shutdown.clone();
    tokio::join!(
        control_loop::run(CLAIMS_LOOP, of_claims, 1, make, stop()),
        control_loop::run(VOLUMES_LOOP, of_volumes, WORKERS, end, stop()),
        control_loop::run(CLASS_LOOP, of_class, 1, class, stop()),
    );
}

struct Controller {
    client: Client,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    classes: Informer<StorageClass>,
    nodes: Informer<Node>,
    claim_queue: WorkQueue<ObjectKey>,
    volume_queue: WorkQueue<ObjectKey>,
    /// Of the one class.
    class_queue: WorkQueue<ObjectKey>,
    /// It was made once: who deletes it then does not want it.
    has_class: AtomicBool,
    recorder: Recorder,
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
enum LocalPathError {
    #[error("cannot make the storage class")]
    Class(#[source] kube::Error),
    #[error("cannot make the volume")]
    Make(#[source] kube::Error),
    #[error("cannot give the claim back to the scheduler")]
    GiveBack(#[source] kube::Error),
    #[error("cannot read the volume")]
    Read(#[source] kube::Error),
    #[error("cannot delete the volume")]
    Delete(#[source] kube::Error),
    #[error("cannot let the volume go")]
    Release(#[source] kube::Error),
    #[error("the directory is not removed: {0}")]
    Remove(String),
}

impl Controller {
    /// Once a node can have volumes. It is the default class unless there is one.
    async fn make_class(&self) -> Result<Requeue, LocalPathError> {
        if self.has_class.load(Ordering::Relaxed) {
            return Ok(Requeue::Never);
        }
        let is_default = volumes::default_class(&self.classes.list()).is_none();
        let class = plan::class(is_default);
        let api: Api<StorageClass> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), &class).await {
            Ok(_) => {}
            Err(error) if refusal::is_already_exists(&error) => {}
            Err(error) => return Err(LocalPathError::Class(error)),
        }
        self.has_class.store(true, Ordering::Relaxed);
        Ok(Requeue::Never)
    }

    async fn provision(&self, key: &ObjectKey) -> Result<Requeue, LocalPathError> {
        let Some(claim) = self.claims.get(key) else {
            return Ok(Requeue::Never);
        };
        let class = volumes::class_of_claim(&claim);
        let class = self.classes.get(&ObjectKey::new("", class));
        let node = volumes::annotation(&claim.metadata, SELECTED_NODE).unwrap_or_default();
        let node = self.nodes.get(&ObjectKey::new("", node));
        match plan::provision(&claim, class.as_deref(), node.as_deref()) {
            Provision::Nothing => {}
            Provision::Volume(volume) => Box::pin(self.make(&claim, &volume)).await?,
            Provision::Refuse(why) => self.refuse(&claim, &why),
            Provision::Elsewhere(why) => {
                self.refuse(&claim, &why);
                Box::pin(self.give_back(&claim)).await?;
            }
        }
        Ok(Requeue::Never)
    }

    async fn make(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<(), LocalPathError> {
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), volume).await {
            Ok(_) => {
                let name = volume.metadata.name.as_deref().unwrap_or_default();
                let message = format!("Successfully provisioned volume {name}");
                let about = events::reference(claim);
                self.recorder
                    .event(&about, EventType::Normal, "ProvisioningSucceeded", message);
                Ok(())
            }
            // Its name is the claim's uid: an earlier pass made it.
            Err(error) if refusal::is_already_exists(&error) => Ok(()),
            Err(error) => Err(LocalPathError::Make(error)),
        }
    }

    fn refuse(&self, claim: &PersistentVolumeClaim, why: &str) {
        let class = volumes::class_of_claim(claim);
        let message = format!("failed to provision volume with StorageClass {class:?}: {why}");
        let about = events::reference(claim);
        self.recorder
            .event(&about, EventType::Warning, "ProvisioningFailed", message);
    }

    /// The scheduler looks for another node.
    async fn give_back(&self, claim: &PersistentVolumeClaim) -> Result<(), LocalPathError> {
        let mut open = claim.clone();
        if let Some(annotations) = &mut open.metadata.annotations {
            annotations.remove(SELECTED_NODE);
        }
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        let api = Api::namespaced(self.client.clone(), namespace);
        match patch::replace(&api, &open).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => Err(LocalPathError::GiveBack(error)),
        }
    }

    async fn end(&self, key: &ObjectKey) -> Result<Requeue, LocalPathError> {
        let Some(volume) = self.volumes.get(key) else {
            return Ok(Requeue::Never);
        };
        match plan::end(&volume) {
            End::Nothing => Ok(Requeue::Never),
            End::Delete => {
                let api: Api<PersistentVolume> = Api::all(self.client.clone());
                let as_seen = patch::delete_as_seen(&*volume);
                match api.delete(&key.name, &as_seen).await {
                    Ok(_) => Ok(Requeue::Never),
                    // Whoever changed it may have taken it back: the change comes here.
                    Err(error) if refusal::is_conflict(&error) => Ok(Requeue::Never),
                    Err(error) if refusal::is_not_found(&error) => Ok(Requeue::Never),
                    Err(error) => Err(LocalPathError::Delete(error)),
                }
            }
            End::LetGo | End::Remove => Box::pin(self.settle(key)).await,
        }
    }

    /// What the server says now counts: this cannot be undone.
    async fn settle(&self, key: &ObjectKey) -> Result<Requeue, LocalPathError> {
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        let live = api.get_opt(&key.name).await.map_err(LocalPathError::Read)?;
        let Some(volume) = live else {
            return Ok(Requeue::Never);
        };
        match plan::end(&volume) {
            End::Nothing | End::Delete => return Ok(Requeue::Never), // Another pass comes.
            End::LetGo => {}
            End::Remove => {
                let node = plan::node_of(&volume);
                let known = self.nodes.get(&ObjectKey::new("", node));
                match plan::removal(&volume, known.as_deref(), self.clock.now()) {
                    Removal::Wait => return Ok(Requeue::After(AWAY)),
                    Removal::Ask => self.remove(&volume, node).await?,
                    Removal::Leave(why) => self.tell_left(&volume, &why),
                }
            }
        }
        match patch::replace(&api, &plan::let_go(&volume)).await {
            Err(error) if !refusal::is_not_found(&error) => Err(LocalPathError::Release(error)),
            _ => Ok(Requeue::Never),
        }
    }

    async fn remove(&self, volume: &PersistentVolume, node: &str) -> Result<(), LocalPathError> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let path = format!("/api/v1/nodes/{node}/proxy/localvolumes/{name}");
        let request = http::Request::delete(path).body(Vec::new());
        let request = request.map_err(|error| LocalPathError::Remove(error.to_string()))?;
        let asked = self.client.request_text(request);
        let why = match tokio::time::timeout(REMOVAL_MAX, asked).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => refusal::message(&error),
            Err(_) => "the node takes long".to_owned(),
        };
        let about = events::reference(volume);
        let message = format!("node {node}: {why}");
        self.recorder
            .event(&about, EventType::Warning, "VolumeFailedDelete", message);
        Err(LocalPathError::Remove(why))
    }

    /// There is nobody to ask who could remove it.
    fn tell_left(&self, volume: &PersistentVolume, why: &str) {
        let about = events::reference(volume);
        let message = format!("{why}: what it has of the volume is left there");
        self.recorder
            .event(&about, EventType::Warning, "VolumeFailedDelete", message);
    }
}

#[cfg(test)]
mod tests;
