//! Deletes pods from nodes whose NoExecute taints they do not tolerate, or no longer.
//!
//! Reads Nodes and Pods; marks and deletes Pods. A pod that bears its node's taints for some time
//! has a timer, kept in memory as upstream's: a restart grants the full time again. The taints
//! are looked at anew when the time has come, so a node that healed keeps its pods.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::{Clock, Instant};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of, patch};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;

use crate::disruption_target::DisruptionTarget;
use crate::{Context, evictions, node_pods, pods, refusal};

mod plan; // Pure. Start reading here.
mod tolerations; // Pure.

use plan::{Decision, Scheduled};

/// As many as upstream's.
const WORKERS: usize = 8;

#[derive(Debug, thiserror::Error)]
#[error("cannot delete the pod {pod}")]
pub(crate) struct EvictError {
    pod: ObjectKey,
    source: kube::Error,
}

struct Controller {
    client: Client,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
    clock: Clock,
    scheduled: Mutex<HashMap<ObjectKey, Scheduled>>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            nodes: context.informers.get(),
            pods: context.informers.get(),
            queue: WorkQueue::new(),
            recorder: context.recorder("taint-eviction-controller"),
            clock: context.clock.clone(),
            scheduled: Mutex::default(),
        });
        node_pods::index(&controller.pods);
        let told = Arc::clone(&controller);
        controller
            .pods
            .on_change(move |change| told.pod_changed(change));
        let told = Arc::clone(&controller);
        controller
            .nodes
            .on_change(move |change| told.node_changed(change));
        if !(controller.nodes.synced().await && controller.pods.synced().await) {
            return;
        }
        let queue = controller.queue.clone();
        let (objects, recorder) = (controller.pods.clone(), controller.recorder.clone());
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run(
            "taint-eviction",
            queue,
            WORKERS,
            reconcile,
            context.shutdown,
        )
        .await;
    })
}

impl Controller {
    fn node_of(&self, pod: &Pod) -> Option<Arc<Node>> {
        self.nodes.get(&ObjectKey::new("", pods::node_name(pod)))
    }

    fn node_changed(&self, change: &Change<Node>) {
        let matters = match change {
            Change::Added(node) | Change::Resync(node) => plan::is_tainted(node),
            Change::Updated { old, new } => !plan::no_execute(old).eq(plan::no_execute(new)),
            Change::Deleted(_) => false, // Its pods keep their times.
        };
        if !matters {
            return;
        }
        let name = change.object().metadata.name.as_deref().unwrap_or_default();
        for pod in node_pods::on_node(&self.pods, name) {
            self.queue.add(key_of(pod.as_ref()));
        }
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let pod = change.object();
        let key = key_of(pod.as_ref());
        let tainted = || self.node_of(pod).is_some_and(|it| plan::is_tainted(&it));
        if self.scheduled.lock().contains_key(&key) || tainted() {
            self.queue.add(key);
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, EvictError> {
        let now = self.clock.monotonic();
        let pod = self.pods.get(key);
        let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
        self.cancel_unless(key, |scheduled| Some(&scheduled.uid) == uid.as_ref());
        let Some(pod) = pod else {
            return Ok(Requeue::Never);
        };
        let node = self.node_of(&pod);
        let scheduled = self.scheduled.lock().get(key).cloned();
        match plan::plan(&pod, node.as_deref(), scheduled.as_ref(), now) {
            Decision::Nothing => {}
            Decision::Stay => self.cancel_unless(key, |_| false),
            Decision::Schedule(at) => {
                self.note(key, uid, at, false);
                return Ok(Requeue::After(at - now));
            }
            Decision::Delete => {
                // A time that still ran is overtaken, and upstream says so.
                self.cancel_unless(key, |scheduled| scheduled.at <= now);
                let late = scheduled.map_or(Duration::ZERO, |one| now.duration_since(one.at));
                if self.delete(key, &pod).await? {
                    evictions::OF_NODES.add(late);
                }
                self.note(key, uid, now, true);
            }
        }
        Ok(Requeue::Never)
    }

    fn note(&self, key: &ObjectKey, uid: Option<String>, at: Instant, done: bool) {
        let uid = uid.unwrap_or_default();
        let scheduled = Scheduled { uid, at, done };
        self.scheduled.lock().insert(key.clone(), scheduled);
        if done {
            self.queue.add(key.clone()); // In case the pod went before this was noted.
        }
    }

    /// Forgets what was scheduled, with an event, unless it is to be kept.
    fn cancel_unless(&self, key: &ObjectKey, keep: impl Fn(&Scheduled) -> bool) {
        let mut scheduled = self.scheduled.lock();
        if scheduled.get(key).is_none_or(keep) {
            return;
        }
        if let Some(gone) = scheduled.remove(key)
            && !gone.done
        {
            self.tell(key, &gone.uid, format!("Cancelling deletion of Pod {key}"));
        }
    }

    fn tell(&self, key: &ObjectKey, uid: &str, text: String) {
        let pod = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        self.recorder
            .event(&pod, EventType::Normal, "TaintManagerEviction", text);
    }

    /// False where somebody else was faster.
    async fn delete(&self, key: &ObjectKey, pod: &Pod) -> Result<bool, EvictError> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        self.tell(key, uid, format!("Marking for deletion Pod {key}"));
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let failed = |source| EvictError {
            pod: key.clone(),
            source,
        };
        let target = DisruptionTarget {
            reason: "DeletionByTaintManager",
            message: "Taint manager: deleting due to NoExecute taint",
            generation: pod.metadata.generation,
        };
        if let Some(patch) = target.patch(pod, &self.clock) {
            let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
            match pods.patch_status(&key.name, &params, &patch).await {
                Err(error) if refusal::is_not_found(&error) => return Ok(false),
                Err(error) => return Err(failed(error)),
                Ok(_) => {}
            }
        }
        match pods.delete(&key.name, &patch::delete_exactly(pod)).await {
            Err(error) if refusal::is_not_found(&error) => Ok(false),
            Err(error) => Err(failed(error)),
            Ok(_) => {
                tracing::info!(pod = %key, "deleted for its node's taints");
                Ok(true)
            }
        }
    }
}
