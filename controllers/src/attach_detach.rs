//! Attaches volumes of CSI drivers to the nodes whose pods use them, and detaches them when no pod
//! does and the node has let go.
//!
//! Reads pods, claims, volumes, drivers, nodes and attachments; writes VolumeAttachments, and of
//! nodes `status.volumesAttached`. A driver's own attacher does the work and says so in the
//! attachment. A volume is struck from the node's list before its attachment is deleted, so that
//! no node begins to use what is going.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::{Clock, Instant};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::Informer;
use coracle_client::patch::{self, PatchError, Precondition};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;

use crate::{Context, refusal};

mod begun;
mod observe;
mod plan; // What to do about a node. Pure. Start reading here.
mod watch;

use begun::Begun;
use plan::Plan;

const WORKERS: usize = 4;
const LOOP: &str = "persistentvolume-attach-detach";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "attachdetach-controller";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        pods: context.informers.get(),
        claims: context.informers.get(),
        volumes: context.informers.get(),
        drivers: context.informers.get(),
        nodes: context.informers.get(),
        attachments: context.informers.get(),
        queue: WorkQueue::new(),
        unwanted_since: Mutex::default(),
        begun: Mutex::default(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    controller.watch();
    let synced = controller.pods.synced().await
        && controller.claims.synced().await
        && controller.volumes.synced().await
        && controller.drivers.synced().await
        && controller.nodes.synced().await
        && controller.attachments.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.nodes.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(LOOP, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    drivers: Informer<CSIDriver>,
    nodes: Informer<Node>,
    attachments: Informer<VolumeAttachment>,
    /// Names of nodes.
    queue: WorkQueue<ObjectKey>,
    /// Since when no pod of its node uses an attachment, by name.
    unwanted_since: Mutex<HashMap<String, Instant>>,
    /// What is made and not shown yet.
    begun: Mutex<Begun>,
    recorder: Recorder,
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
enum AttachError {
    #[error("cannot make the attachment")]
    Attach(#[source] kube::Error),
    #[error("cannot delete the attachment")]
    Detach(#[source] kube::Error),
    #[error("cannot note what is attached to the node")]
    Note(#[source] PatchError),
    #[error("cannot read the node")]
    Read(#[source] kube::Error),
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, AttachError> {
        let view = self.observe(&key.name);
        let plan = plan::plan(&view);
        self.remember(&view, &plan);
        Box::pin(self.execute(&view, &plan)).await?;
        Ok(plan.again.map_or(Requeue::Never, Requeue::After))
    }

    /// Since when attachments are not wanted; of what is gone or wanted again nothing is kept.
    fn remember(&self, view: &plan::View, plan: &Plan) {
        let now = self.clock.monotonic();
        let mut since = self.unwanted_since.lock();
        for one in &view.attachments {
            let name = one.metadata.name.clone().unwrap_or_default();
            if plan.unwanted.contains(&name) {
                since.entry(name).or_insert(now);
            } else {
                since.remove(&name);
            }
        }
        let is_there = |name: &str| self.attachments.get(&ObjectKey::new("", name)).is_some();
        since.retain(|name, _| is_there(name));
    }

    /// What is refused of one volume holds up no other; the first failure is told at the end.
    async fn execute(&self, view: &plan::View, plan: &Plan) -> Result<(), AttachError> {
        // What is still on the list is not detached.
        let detached = match Box::pin(self.note(view, plan)).await {
            Ok(()) => {
                let reason = "SuccessfulAttachVolume";
                self.tell(EventType::Normal, reason, &plan.told_attached);
                Box::pin(self.detach(view, plan)).await
            }
            Err(error) => Err(error),
        };
        let attached = Box::pin(self.attach(view, plan)).await;
        self.tell(EventType::Warning, "FailedAttachVolume", &plan.told);
        detached.and(attached)
    }

    fn tell(&self, kind: EventType, reason: &str, all: &[plan::Told]) {
        for told in all {
            let about = events::reference(told.pod.as_ref());
            self.recorder
                .event(&about, kind, reason, told.message.clone());
        }
    }

    async fn note(&self, view: &plan::View, plan: &Plan) -> Result<(), AttachError> {
        let (Some(node), Some(attached)) = (&view.node, &plan.attached) else {
            return Ok(());
        };
        let mut noted = Node::clone(node);
        noted.status.get_or_insert_default().volumes_attached = Some(attached.clone());
        let api: Api<Node> = Api::all(self.client.clone());
        let done = patch::status(&api, node, &noted, Precondition::SameObject).await;
        done.map(drop).map_err(AttachError::Note)
    }

    async fn detach(&self, view: &plan::View, plan: &Plan) -> Result<(), AttachError> {
        if plan.detach.is_empty() {
            return Ok(());
        }
        let api: Api<VolumeAttachment> = Api::all(self.client.clone());
        let in_use = self.in_use(&view.name).await?;
        let mut all = Ok(());
        for detach in &plan.detach {
            // The node may have begun to use it before it saw that it is going.
            if !detach.is_forced && in_use.contains(&detach.unique_name) {
                self.queue.add_after(ObjectKey::new("", &view.name), RETRY);
                continue;
            }
            // A later attachment of the same volume to the same node has the same name.
            let exactly = patch::delete_exactly(detach.attachment.as_ref());
            match api.delete(detach.name(), &exactly).await {
                Err(error) if !refusal::is_not_found(&error) && !refusal::is_conflict(&error) => {
                    all = all.and(Err(AttachError::Detach(error)));
                }
                _ => {}
            }
        }
        all
    }

    async fn attach(&self, view: &plan::View, plan: &Plan) -> Result<(), AttachError> {
        let api: Api<VolumeAttachment> = Api::all(self.client.clone());
        let mut all = Ok(());
        for attachment in &plan.attach {
            if !self.begin(view, attachment) {
                self.queue.add_after(ObjectKey::new("", &view.name), RETRY);
                continue;
            }
            match api.create(&PostParams::default(), attachment).await {
                Err(error) if !refusal::is_already_exists(&error) => {
                    // Without an answer it may be there all the same.
                    if matches!(error, kube::Error::Api(_)) {
                        self.begun.lock().end(attachment);
                    }
                    all = all.and(Err(AttachError::Attach(error)));
                }
                _ => {}
            }
        }
        all
    }

    /// Whether the attachment may be made. Two nodes may want the same volume at once, and neither
    /// sees yet what the other makes.
    fn begin(&self, view: &plan::View, attachment: &VolumeAttachment) -> bool {
        let volume = attachment.spec.source.persistent_volume_name.as_deref();
        let volume = volume.unwrap_or_default();
        let is_it = |one: &&plan::Wanted| one.volume.name() == volume;
        if (view.wanted.iter().find(is_it)).is_none_or(|one| one.volume.is_shared()) {
            return true;
        }
        let mut begun = self.begun.lock();
        // What ends a beginning is in the copy before it is told.
        let shown = self.attachments.by_index(watch::BY_VOLUME, volume);
        shown.is_empty() && begun.begin(attachment, self.clock.monotonic())
    }

    /// As the node says it now; a node that is gone uses nothing.
    async fn in_use(&self, node: &str) -> Result<Vec<String>, AttachError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let live = api.get_opt(node).await.map_err(AttachError::Read)?;
        let status = live.and_then(|node| node.status);
        Ok(status
            .and_then(|status| status.volumes_in_use)
            .unwrap_or_default())
    }
}

/// Until what a node began to use meanwhile, or another one began to attach, is looked at again.
const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
