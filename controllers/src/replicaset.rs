//! Keeps the number of live pods of a ReplicaSet, or of a ReplicationController, equal to
//! `spec.replicas`.
//!
//! Reads the sets, and pods by their controller's uid; writes pods and `status`. Never picks a
//! node, touches a pod that another controller owns, sleeps or retries: the queue does that.
//! Expectations guard creation and deletion against a cache that lags.

use std::sync::Arc;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::Recorder;
use coracle_client::expectations::Expectations;
use coracle_client::informer::{Change, Informer};
use coracle_client::own_writes::OwnWrites;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};

use crate::Context;
use crate::ownership::{self, controller_of};
use crate::pods;

mod execute;
mod kind;
mod plan; // Pure. Start reading here.
mod rank;
mod status;
mod watch;

use execute::ReconcileError;
use kind::Replicated;

/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;

pub(crate) fn run_replica_sets(context: Context) -> BoxFuture<'static, ()> {
    run::<ReplicaSet>(context).boxed()
}

pub(crate) fn run_replication_controllers(context: Context) -> BoxFuture<'static, ()> {
    run::<ReplicationController>(context).boxed()
}

async fn run<K: Replicated>(context: Context) {
    let controller = Arc::new(Controller::<K> {
        client: context.client.clone(),
        sets: context.informers.get(),
        pods: context.informers.get(),
        queue: WorkQueue::new(),
        expectations: Expectations::new(),
        own_writes: OwnWrites::new(),
        recorder: context.recorder(K::COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.pods);
    let told = controller.clone();
    controller
        .sets
        .on_change(move |change| told.set_changed(change));
    let told = controller.clone();
    controller
        .pods
        .on_change(move |change| told.pod_changed(change));
    if !(controller.sets.synced().await && controller.pods.synced().await) {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.sets.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(K::COMPONENT, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller<K> {
    client: Client,
    sets: Informer<K>,
    pods: Informer<Pod>,
    queue: WorkQueue<ObjectKey>,
    expectations: Expectations,
    own_writes: OwnWrites,
    recorder: Recorder,
    clock: Clock,
}

impl<K: Replicated> Controller<K> {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            self.own_writes.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        if let Some(wait) = self.own_writes.behind(&*set) {
            return Ok(Requeue::After(wait)); // What it waits for brings the next pass.
        }
        let Some(spec) = set.spec() else {
            return Ok(Requeue::Never); // No pass can make sense of its selector.
        };
        let now = self.clock.now();
        let observed = self.observe(key, &set, &spec);
        let plan = plan::plan(&observed, now);
        self.execute(key, &set, &spec, plan, now).await
    }

    fn observe<'a>(
        &self,
        key: &ObjectKey,
        set: &'a Arc<K>,
        spec: &'a kind::Spec<'a>,
    ) -> plan::Observed<'a> {
        // Asked before the pods are listed: what is seen from here on is not in the list.
        let satisfied = self.expectations.satisfied(key);
        let uid = set.meta().uid.as_deref().unwrap_or_default();
        let pods = ownership::owned_or_orphaned(&self.pods, uid, &key.namespace);
        let surplus = pods.len() > usize::try_from(spec.replicas).unwrap_or(0);
        plan::Observed {
            meta: set.meta(),
            spec,
            related: if surplus {
                self.related_pods(set)
            } else {
                Vec::new()
            },
            pods,
            satisfied,
        }
    }

    /// The pods of all sets that have the same controller, such as one Deployment, this set's own
    /// among them: pods are taken first from the nodes where most of these run.
    fn related_pods(&self, set: &K) -> Vec<Arc<Pod>> {
        let own = set.meta().uid.as_deref().unwrap_or_default();
        let siblings: Vec<String> = match controller_of(set.meta()) {
            None => vec![own.to_owned()],
            Some(controller) => self
                .sets
                .by_owner_uid(&controller.uid)
                .iter()
                .filter_map(|sibling| sibling.meta().uid.clone())
                .collect(),
        };
        siblings
            .iter()
            .flat_map(|uid| ownership::owned(&self.pods, uid))
            .collect()
    }
}

#[cfg(test)]
mod tests;
