//! Keeps one pod of a DaemonSet on every node where one belongs, and rolls its template out.
//!
//! Reads DaemonSets, their revisions, pods and nodes; writes pods, revisions and `status`. Never
//! binds a pod: each asks for its node by name, and the scheduler does the rest. Expectations
//! guard creation and deletion against a cache that lags.

use std::sync::Arc;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::expectations::Expectations;
use coracle_client::informer::{Change, Informer};
use coracle_client::own_writes::OwnWrites;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::Mutex;

use crate::Context;
use crate::ownership::{self, controller_of};

mod backoff;
mod execute;
mod placement;
mod plan; // Pure. Start reading here.
mod revisions;
mod rollout;
mod spec;
mod status;
mod watch;

use backoff::Backoff;
use execute::ReconcileError;
use placement::Requirements;
use spec::Spec;

/// As many as upstream's default.
const WORKERS: usize = 2;
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "daemonset-controller";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        sets: context.informers.get(),
        revisions: context.informers.get(),
        pods: context.informers.get(),
        nodes: context.informers.get(),
        queue: WorkQueue::new(),
        expectations: Expectations::new(),
        own_writes: OwnWrites::new(),
        backoff: Mutex::default(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.pods);
    ownership::index_by_controller(&controller.revisions);
    controller.watch();
    let synced = controller.sets.synced().await
        && controller.revisions.synced().await
        && controller.pods.synced().await
        && controller.nodes.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.sets.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(COMPONENT, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    sets: Informer<DaemonSet>,
    revisions: Informer<ControllerRevision>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    queue: WorkQueue<ObjectKey>,
    expectations: Expectations,
    own_writes: OwnWrites,
    backoff: Mutex<Backoff>,
    recorder: Recorder,
    clock: Clock,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            self.own_writes.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        if let Some(wait) = self.own_writes.behind(&*set) {
            return Ok(Requeue::After(wait)); // What it waits for brings the next pass.
        }
        let Some(spec) = Spec::of(&set) else {
            return Ok(Requeue::Never); // No pass can make sense of its selector.
        };
        if spec.selector.is_empty() {
            let message =
                "This daemon set is selecting all pods. A non-empty selector is required.";
            self.tell(&set, EventType::Warning, "SelectingAll", message);
            return Ok(Requeue::Never);
        }
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Requeue::Never); // What it had may be orphaned by now.
        }
        // Boxed: the objects that it writes make it large.
        Box::pin(self.pass(key, &set, &spec)).await
    }

    fn tell(&self, set: &DaemonSet, event_type: EventType, reason: &str, message: &str) {
        let about = events::reference(set);
        self.recorder.event(&about, event_type, reason, message);
    }
}

#[cfg(test)]
mod tests;
