//! Keeps count of how many pods each PodDisruptionBudget lets go, and takes back the word of a
//! disruption that did not come.
//!
//! Reads budgets, pods and the controllers of pods; writes `status` of budgets, and of pods the
//! condition `DisruptionTarget`. Never evicts: the eviction API spends what is counted here, and
//! notes whom it let go, so that a pod which is not yet seen going is not counted as there.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::Informer;
use coracle_client::patch;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kube::Api;

use crate::labels::Selector;
use crate::scalable::Kinds;
use crate::{Context, refusal};

mod plan; // Pure. Start reading here.
mod scale;
mod stale;
mod told; // What is said of a budget, in upstream's words.
mod watch;

use scale::ScaleError;

/// As many as upstream's: most passes write nothing.
const WORKERS: usize = 1;
const LOOP: &str = "disruption";
const STALE_LOOP: &str = "stale-pod-disruption";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "controllermanager";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        kinds: Kinds::new(context.client.clone(), context.clock.clone()),
        budgets: context.informers.get(),
        pods: context.informers.get(),
        deployments: context.informers.get(),
        replica_sets: context.informers.get(),
        stateful_sets: context.informers.get(),
        replication_controllers: context.informers.get(),
        queue: WorkQueue::new(),
        stale: WorkQueue::new(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    controller.watch();
    let synced = controller.budgets.synced().await
        && controller.pods.synced().await
        && controller.deployments.synced().await
        && controller.replica_sets.synced().await
        && controller.stateful_sets.synced().await
        && controller.replication_controllers.synced().await;
    if !synced {
        return;
    }
    let (queue, stale) = (controller.queue.clone(), controller.stale.clone());
    let (objects, recorder) = (controller.budgets.clone(), controller.recorder.clone());
    let count = control_loop::with(controller.clone(), |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    let (objects, recorder) = (controller.pods.clone(), controller.recorder.clone());
    let clean = control_loop::with(controller, |it, key| Box::pin(it.clean(key)))
        .telling(objects, recorder);
    tokio::join!(
        control_loop::run(LOOP, queue, WORKERS, count, context.shutdown.clone()),
        control_loop::run(STALE_LOOP, stale, WORKERS, clean, context.shutdown),
    );
}

struct Controller {
    client: Client,
    kinds: Kinds,
    budgets: Informer<PodDisruptionBudget>,
    pods: Informer<Pod>,
    deployments: Informer<Deployment>,
    replica_sets: Informer<ReplicaSet>,
    stateful_sets: Informer<StatefulSet>,
    replication_controllers: Informer<ReplicationController>,
    queue: WorkQueue<ObjectKey>,
    /// Pods that were to be disrupted.
    stale: WorkQueue<ObjectKey>,
    recorder: Recorder,
    clock: Clock,
}

/// Between two counts of pods whose controllers cannot be asked: a change of a budget, a pod or a
/// known controller comes first.
const RECOUNT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot count the expected pods")]
    Scale(#[from] ScaleError),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
    #[error("cannot take back the condition of the pod")]
    Condition(#[source] kube::Error),
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(budget) = self.budgets.get(key) else {
            return Ok(Requeue::Never);
        };
        let pods = self.selected(&budget);
        if pods.is_empty() {
            self.tell(&budget, EventType::Normal, "NoPods", told::NO_PODS);
        }
        let scale = match self.scale(&budget, &pods).await {
            Ok(scale) => scale,
            Err(error) => {
                let message = format!("{}{}", told::NOT_COUNTED, error.text());
                let reason = "CalculateExpectedPodCountFailed";
                self.tell(&budget, EventType::Warning, reason, &message);
                let failed = plan::failed(&budget, error.text(), self.clock.time());
                // Nobody may be evicted on a count that is not to be trusted.
                self.write(&budget, failed).await?;
                return if error.is_passing() {
                    Err(error.into())
                } else {
                    Ok(Requeue::After(RECOUNT))
                };
            }
        };
        if !scale.unmanaged.is_empty() {
            let message = told::unmanaged(&budget);
            self.tell(&budget, EventType::Warning, "UnmanagedPods", &message);
        }
        let plan = plan::plan(&budget, &pods, scale.total, self.clock.now());
        for pod in &plan.not_deleted {
            let about = events::reference(pod.as_ref());
            let message = told::not_deleted(&budget);
            self.recorder
                .event(&about, EventType::Warning, "NotDeleted", &message);
        }
        self.write(&budget, plan.status).await?;
        Ok(plan.again.map_or(Requeue::Never, Requeue::After))
    }

    /// The pods that a budget is about; none where it has no selector.
    fn selected(&self, budget: &PodDisruptionBudget) -> Vec<Arc<Pod>> {
        let Some(selector) = selector_of(budget) else {
            return Vec::new();
        };
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        let mut pods = self.pods.list_namespace(namespace);
        pods.retain(|pod| selector.matches(pod.metadata.labels.as_ref()));
        pods
    }

    /// Refused as a conflict when the eviction API has written meanwhile.
    async fn write(
        &self,
        budget: &PodDisruptionBudget,
        status: PodDisruptionBudgetStatus,
    ) -> Result<(), ReconcileError> {
        if !plan::differs(budget, &status) {
            return Ok(());
        }
        let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
        let budgets = Api::namespaced(self.client.clone(), namespace);
        let wanted = PodDisruptionBudget {
            status: Some(status),
            ..budget.clone()
        };
        match patch::replace_status(&budgets, &wanted).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => Err(ReconcileError::Status(error)),
        }
    }

    fn tell(&self, budget: &PodDisruptionBudget, kind: EventType, reason: &str, message: &str) {
        let about = events::reference(budget);
        self.recorder.event(&about, kind, reason, message);
    }
}

fn selector_of(budget: &PodDisruptionBudget) -> Option<Selector> {
    Selector::from_label_selector(budget.spec.as_ref()?.selector.as_ref()?)
}

#[cfg(test)]
mod tests;
