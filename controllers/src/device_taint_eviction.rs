//! Deletes pods that use a device with a NoExecute taint which their claim does not tolerate, or no
//! longer.
//!
//! Reads Pods, ResourceClaims and ResourceSlices; marks and deletes Pods. The times are counted from
//! what the taints say, so that a restart changes none. What a claim was given with stays: only
//! tolerations in its allocation count.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of, patch};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;

use crate::disruption_target::DisruptionTarget;
use crate::{Context, evictions, pods, refusal};

mod plan; // Pure. Start reading here.

/// As many as upstream's.
const WORKERS: usize = 8;
/// Upstream's name, of the component in its events as well.
pub(crate) const NAME: &str = "device-taint-eviction-controller";
const REASON: &str = "DeviceTaintManagerEviction";
/// An index of claims by the pools of their devices, and of slices by their pool.
const BY_POOL: &str = "pool";

#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the pod {pod}")]
struct EvictError {
    doing: &'static str,
    pod: ObjectKey,
    source: kube::Error,
}

struct Controller {
    client: Client,
    pods: Informer<Pod>,
    claims: Informer<ResourceClaim>,
    slices: Informer<ResourceSlice>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
    clock: Clock,
    /// Bounded by the pods there are.
    scheduled: Mutex<HashMap<ObjectKey, Scheduled>>,
}

/// A pod that is to go, or was made to.
#[derive(Clone, Debug)]
struct Scheduled {
    uid: String,
    is_done: bool,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        pods: context.informers.get(),
        claims: context.informers.get(),
        slices: context.informers.get(),
        queue: WorkQueue::new(),
        recorder: context.recorder(NAME),
        clock: context.clock.clone(),
        scheduled: Mutex::default(),
    });
    controller.claims.add_index(BY_POOL, plan::pools_of);
    let pool_of = |slice: &ResourceSlice| vec![plan::pool_of(slice)];
    controller.slices.add_index(BY_POOL, pool_of);
    controller.watch();
    let synced = controller.pods.synced().await
        && controller.claims.synced().await
        && controller.slices.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.pods.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(NAME, queue, WORKERS, reconcile, context.shutdown).await;
}

impl Controller {
    fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
        let told = Arc::clone(self);
        self.claims.on_change(move |change| {
            if let Change::Updated { old, .. } = change {
                told.add_users(old);
            }
            told.add_users(change.object());
        });
        let told = Arc::clone(self);
        self.slices
            .on_change(move |change| told.slice_changed(change));
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let matters = match change {
            Change::Updated { old, new } => {
                pods::node_name(old) != pods::node_name(new)
                    || plan::statuses(old) != plan::statuses(new)
            }
            _ => plan::uses_claims(change.object()),
        };
        if matters {
            self.queue.add(key_of(change.object().as_ref()));
        }
    }

    fn add_users(&self, claim: &ResourceClaim) {
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        for pod in plan::users(claim) {
            self.queue.add(ObjectKey::new(namespace, &*pod.name));
        }
    }

    /// A slice may outdate others of its pool, and their taints with them.
    fn slice_changed(&self, change: &Change<ResourceSlice>) {
        let pool = plan::pool_of(change.object());
        let was_tainted = match change {
            Change::Updated { old, .. } => plan::is_tainted(old),
            _ => false,
        };
        let is_tainted = || {
            let slices = self.slices.by_index(BY_POOL, &pool);
            slices.iter().any(|slice| plan::is_tainted(slice))
        };
        let matters = was_tainted
            || plan::is_tainted(change.object())
            || is_tainted()
            || !self.scheduled.lock().is_empty();
        if matters {
            let claims = self.claims.by_index(BY_POOL, &pool);
            claims.iter().for_each(|claim| self.add_users(claim));
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, EvictError> {
        let pod = self.pods.get(key);
        let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
        let scheduled = self.scheduled_as(key, uid.as_deref());
        let (Some(pod), Some(uid)) = (pod, uid) else {
            return Ok(Requeue::Never);
        };
        if scheduled.is_some_and(|scheduled| scheduled.is_done) {
            return Ok(Requeue::Never);
        }
        let Some(at) = self.goes_at(&pod) else {
            self.cancel(key);
            return Ok(Requeue::Never);
        };
        let left = at.duration_since(self.clock.now());
        if let Some(left) = Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
            self.note(key, &uid, false);
            return Ok(Requeue::After(left));
        }
        self.evict(key, &uid, at).await?;
        self.note(key, &uid, true);
        self.queue.add(key.clone()); // In case the pod went before this was noted.
        Ok(Requeue::Never)
    }

    fn goes_at(&self, pod: &Pod) -> Option<Timestamp> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let claim = |name: &str| self.claims.get(&ObjectKey::new(namespace, name));
        let slices = |pool: &str| self.slices.by_index(BY_POOL, pool);
        plan::goes_at(pod, claim, slices)
    }

    /// What is known of this very pod; of a predecessor it is forgotten.
    fn scheduled_as(&self, key: &ObjectKey, uid: Option<&str>) -> Option<Scheduled> {
        let mut all = self.scheduled.lock();
        let known = all.get(key)?;
        if uid == Some(&*known.uid) {
            return Some(known.clone());
        }
        all.remove(key);
        None
    }

    fn note(&self, key: &ObjectKey, uid: &str, is_done: bool) {
        let uid = uid.to_owned();
        let scheduled = Scheduled { uid, is_done };
        self.scheduled.lock().insert(key.clone(), scheduled);
    }

    fn cancel(&self, key: &ObjectKey) {
        let gone = self.scheduled.lock().remove(key);
        if let Some(gone) = gone {
            self.tell(key, &gone.uid, "Cancelling deletion");
        }
    }

    fn tell(&self, key: &ObjectKey, uid: &str, text: &str) {
        let pod = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        self.recorder
            .event(&pod, EventType::Normal, REASON, text.to_owned());
    }

    /// Asks the server first: the copy may not show yet that somebody else deleted it.
    async fn evict(&self, key: &ObjectKey, uid: &str, at: Timestamp) -> Result<(), EvictError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let failed = |doing, source| EvictError {
            doing,
            pod: key.clone(),
            source,
        };
        let found = pods.get_opt(&key.name).await;
        let found = found.map_err(|source| failed("read", source))?;
        let is_it = |pod: &Pod| pod.metadata.uid.as_deref() == Some(uid) && !pods::is_deleting(pod);
        let Some(pod) = found.filter(is_it) else {
            return Ok(());
        };
        self.tell(key, uid, "Marking for deletion");
        let target = DisruptionTarget {
            reason: "DeletionByDeviceTaintManager",
            message: "Device Taint manager: deleting due to NoExecute taint",
            generation: None,
        };
        if let Some(patch) = target.patch(&pod, &self.clock) {
            let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
            match pods.patch_status(&key.name, &params, &patch).await {
                Err(error) if refusal::is_not_found(&error) => return Ok(()),
                Err(error) => return Err(failed("mark", error)),
                Ok(_) => {}
            }
        }
        match pods.delete(&key.name, &patch::delete_exactly(&pod)).await {
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => Err(failed("delete", error)),
            Ok(_) => {
                tracing::info!(pod = %key, "deleted for the taints of its devices");
                let late = self.clock.now().duration_since(at);
                evictions::OF_DEVICES.add(Duration::try_from(late).unwrap_or_default());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
