//! Rolls a Deployment's template out through ReplicaSets, one for each revision of it.
//!
//! Reads Deployments, their ReplicaSets, and pods by ReplicaSet; writes ReplicaSets and the
//! Deployment's `status` and revision. Never touches a pod: the ReplicaSets' loop does that.
//! Every write to a ReplicaSet carries the resourceVersion that it was decided on, so a cache
//! that lags causes a conflict and another pass, not a wrong size.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::Recorder;
use coracle_client::informer::{Change, Informer};
use coracle_client::own_writes::OwnWrites;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::labels::Selector;
use crate::ownership::{self, Claim, claim, controller_of};
use crate::{Context, pods};

mod conditions;
mod execute;
mod plan; // Pure. Start reading here.
mod proportion;
mod revision;
mod rollout;
mod sets;
mod spec;
mod status;
mod template;

use execute::ReconcileError;

/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "deployment-controller";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        deployments: context.informers.get(),
        sets: context.informers.get(),
        pods: context.informers.get(),
        queue: WorkQueue::new(),
        own_writes: OwnWrites::new(),
        writes_to_sets: OwnWrites::new(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.sets);
    ownership::index_by_controller(&controller.pods);
    let told = controller.clone();
    controller.deployments.on_change(move |change| {
        told.queue.add(key_of(change.object().as_ref()));
    });
    let told = controller.clone();
    controller
        .sets
        .on_change(move |change| told.set_changed(change));
    let told = controller.clone();
    controller
        .pods
        .on_change(move |change| told.pod_changed(change));
    let synced = controller.deployments.synced().await
        && controller.sets.synced().await
        && controller.pods.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.deployments.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(COMPONENT, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    deployments: Informer<Deployment>,
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
    queue: WorkQueue<ObjectKey>,
    own_writes: OwnWrites,
    writes_to_sets: OwnWrites,
    recorder: Recorder,
    clock: Clock,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(deployment) = self.deployments.get(key) else {
            self.own_writes.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        let Some(claims) = self.claims(key, &deployment) else {
            return Ok(Requeue::Never); // No pass can make sense of its spec.
        };
        if let Some(wait) = self.behind(&deployment, &claims.owned) {
            return Ok(Requeue::After(wait)); // What it waits for brings the next pass.
        }
        let observed = plan::Observed {
            pods_left: self.pods_left(&claims.owned),
            deployment: deployment.clone(),
            sets: claims.owned.clone(),
        };
        let plan = plan::plan(&observed, self.clock.now());
        // Boxed: the objects that it writes make it large.
        Box::pin(self.execute(key, &deployment, claims, plan)).await
    }

    /// What its sets and the orphans of the namespace are to this deployment.
    fn claims(&self, key: &ObjectKey, deployment: &Deployment) -> Option<Claims> {
        let spec = deployment.spec.as_ref()?;
        let selector = Selector::from_label_selector(&spec.selector)?;
        let mut claims = Claims::default();
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        for set in ownership::owned_or_orphaned(&self.sets, uid, &key.namespace) {
            if set.spec.is_none() {
                continue;
            }
            // A selector that matches everything must not adopt everything.
            match claim(&deployment.metadata, &selector, &set.metadata) {
                Claim::Own => claims.owned.push(set),
                Claim::Adopt if !selector.is_empty() => {
                    claims.adopt.push(set.clone());
                    claims.owned.push(set);
                }
                Claim::Release => claims.release.push(set),
                Claim::Adopt | Claim::Ignore => {}
            }
        }
        Some(claims)
    }

    /// How long to wait at most for the caches to show what earlier passes wrote.
    fn behind(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Option<Duration> {
        let sets = || {
            sets.iter()
                .find_map(|set| self.writes_to_sets.behind(&**set))
        };
        self.own_writes.behind(deployment).or_else(sets)
    }

    /// The sets that still have pods which may run, by uid.
    fn pods_left(&self, sets: &[Arc<ReplicaSet>]) -> Vec<String> {
        let uids = sets.iter().filter_map(|set| set.metadata.uid.clone());
        uids.filter(|uid| {
            let pods = ownership::owned(&self.pods, uid);
            pods.iter().any(|pod| !pods::is_finished(pod))
        })
        .collect()
    }

    fn set_changed(&self, change: &Change<ReplicaSet>) {
        if let Change::Updated { old, new } = change
            && controller_of(&old.metadata) != controller_of(&new.metadata)
        {
            self.enqueue_owner(&old.metadata);
        }
        let set = change.object();
        if matches!(change, Change::Deleted(_)) {
            self.writes_to_sets.forget(&key_of(set.as_ref()));
        }
        match (controller_of(&set.metadata), change) {
            (Some(_), _) => self.enqueue_owner(&set.metadata),
            (None, Change::Deleted(_) | Change::Resync(_)) => {}
            (None, Change::Added(_) | Change::Updated { .. }) => self.offer(set),
        }
    }

    /// An orphan is offered to every deployment that it matches; the first to adopt it wins.
    fn offer(&self, set: &ReplicaSet) {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        for deployment in self.deployments.list_namespace(namespace) {
            let spec = deployment.spec.as_ref();
            let selector = spec.and_then(|spec| Selector::from_label_selector(&spec.selector));
            let matches = |selector: Selector| {
                !selector.is_empty() && selector.matches(set.metadata.labels.as_ref())
            };
            if selector.is_some_and(matches) {
                self.queue.add(key_of(deployment.as_ref()));
            }
        }
    }

    /// A Recreate deployment waits for its old pods to be gone.
    fn pod_changed(&self, change: &Change<Pod>) {
        let pod = match change {
            Change::Deleted(pod) => pod,
            Change::Updated { old, new } if !pods::is_finished(old) && pods::is_finished(new) => {
                new
            }
            _ => return,
        };
        let Some(set) = controller_of(&pod.metadata).filter(|owner| owner.kind == "ReplicaSet")
        else {
            return;
        };
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(set) = self.sets.get(&ObjectKey::new(namespace, &set.name))
            && let Some(deployment) = self.owner_of(&set.metadata)
            && spec::is_recreate(&deployment)
        {
            self.queue.add(key_of(deployment.as_ref()));
        }
    }

    fn enqueue_owner(&self, meta: &ObjectMeta) {
        if let Some(deployment) = self.owner_of(meta) {
            self.queue.add(key_of(deployment.as_ref()));
        }
    }

    /// The deployment that controls an object, if it is still the same one.
    fn owner_of(&self, meta: &ObjectMeta) -> Option<Arc<Deployment>> {
        ownership::owner_of(&self.deployments, meta)
    }
}

/// The sets of a deployment, and what has to be done for them to be just its sets.
#[derive(Debug, Default)]
struct Claims {
    /// Those to be adopted among them.
    owned: Vec<Arc<ReplicaSet>>,
    adopt: Vec<Arc<ReplicaSet>>,
    release: Vec<Arc<ReplicaSet>>,
}

#[cfg(test)]
mod tests;
