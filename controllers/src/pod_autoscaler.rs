//! Keeps as many pods as a load asks for: a HorizontalPodAutoscaler sets `spec.replicas` of what
//! has a scale, from metrics.
//!
//! Reads autoscalers, pods, scales and the metrics APIs; writes scales and `status` of
//! autoscalers. Looks at each autoscaler every 15 s, however its last look ended; without any it
//! does nothing. Never makes or deletes pods, and never scales what stands at zero.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::{Clock, Instant};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::{Backoff, WorkQueue};
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus as Status, MetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;

use crate::Context;
use crate::scalable::Kinds;

mod plan; // Pure. Start reading here.

mod behaviour;
mod calculate;
mod counts;
mod execute;
mod measure;
mod metrics;
mod overlap;
mod propose;
mod requests;
mod status;

use behaviour::Memory;
use counts::{Action, COUNTS, Fault};
use metrics::MetricsClient;
use overlap::Selectors;
use plan::First;

pub use counts::text as metrics_text;

/// Upstream's default of `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: Duration = Duration::from_secs(15);
/// Upstream's `--concurrent-horizontal-pod-autoscaler-syncs`.
const WORKERS: usize = 5;
const LOOP: &str = "horizontalpodautoscaler";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "horizontal-pod-autoscaler";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        kinds: Kinds::new(context.client.clone(), context.clock.clone()),
        metrics: MetricsClient::new(context.client.clone()),
        autoscalers: context.informers.get(),
        pods: context.informers.get(),
        // A pass that fails is not looked at sooner or later than one that does not.
        queue: WorkQueue::with_backoff(Backoff {
            min: SYNC_PERIOD,
            max: SYNC_PERIOD,
        }),
        selectors: Selectors::default(),
        memories: Mutex::default(),
        recorder: context.recorder(COMPONENT),
        started: context.clock.monotonic(),
        clock: context.clock.clone(),
    });
    let told = Arc::clone(&controller);
    controller.autoscalers.on_change(move |change| {
        let key = key_of(change.object().as_ref());
        match change {
            // Forgotten at once: it must not stand in another's way.
            Change::Deleted(_) => told.forget(&key),
            _ => {
                COUNTS.is_there(&key);
                told.queue.add_after(key, SYNC_PERIOD);
            }
        }
    });
    if !controller.autoscalers.synced().await || !controller.pods.synced().await {
        return;
    }
    let queue = controller.queue.clone();
    let shared = Arc::clone(&controller);
    let (objects, recorder) = (controller.autoscalers.clone(), controller.recorder.clone());
    let passes = control_loop::with(shared, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(LOOP, queue, WORKERS, passes, context.shutdown).await;
    // Another process leads then.
    for autoscaler in controller.autoscalers.list() {
        COUNTS.forget(&key_of(autoscaler.as_ref()));
    }
}

struct Controller {
    client: Client,
    kinds: Kinds,
    metrics: MetricsClient,
    autoscalers: Informer<HorizontalPodAutoscaler>,
    pods: Informer<Pod>,
    queue: WorkQueue<ObjectKey>,
    selectors: Selectors,
    /// By uid; bounded by the autoscalers there are.
    memories: Mutex<HashMap<ObjectKey, (String, Memory)>>,
    recorder: Recorder,
    clock: Clock,
    started: Instant,
}

/// Told in conditions and events too; here for the log.
#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot read the scale of the target: {0}")]
    Version(String),
    #[error("cannot read the scale of the target: {0}")]
    Scale(String),
    #[error("cannot compute the number of replicas: {0}")]
    Metrics(String),
    #[error("cannot write the scale of the target")]
    Rescale(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

/// What a pass has come to.
#[derive(Default)]
struct Decision {
    replicas: i32,
    /// Why; where nothing changes, nothing.
    reason: String,
    is_rescale: bool,
    /// What was read of each metric.
    statuses: Vec<MetricStatus>,
    /// Of a metric that failed while others say enough.
    error: Option<String>,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(autoscaler) = self.autoscalers.get(key) else {
            self.forget(key);
            return Ok(Requeue::Never);
        };
        let begun = self.clock.monotonic();
        let mut action = Action::None;
        let done = self.pass(key, &autoscaler, &mut action).await;
        let took = self.clock.monotonic().duration_since(begun);
        COUNTS.pass(action, Fault::of(&done), took);
        match done {
            Ok(()) => {}
            // Its conditions and events say so; a line each 15 s would wear the disk for nothing.
            Err(
                error @ (ReconcileError::Version(_)
                | ReconcileError::Scale(_)
                | ReconcileError::Metrics(_)),
            ) => {
                tracing::debug!(control_loop = LOOP, %key, %error, "again");
            }
            Err(error) => return Err(error),
        }
        Ok(Requeue::After(SYNC_PERIOD))
    }

    fn forget(&self, key: &ObjectKey) {
        self.selectors.forget(key);
        self.memories.lock().remove(key);
        COUNTS.forget(key);
    }

    async fn pass(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        action: &mut Action,
    ) -> Result<(), ReconcileError> {
        let mut status = status::of(autoscaler);
        let (objects, scale) = match self.scale_of(autoscaler).await {
            Ok(found) => found,
            Err(why) => {
                self.tell(autoscaler, EventType::Warning, "FailedGetScale", &why);
                let text = "the HPA controller was unable to get the target's current scale";
                let text = format!("{text}: {why}");
                self.set(&mut status, status::ABLE, false, "FailedGetScale", &text);
                self.write_or_log(autoscaler, status).await;
                return Err(match plan::has_version(autoscaler) {
                    true => ReconcileError::Scale(why),
                    false => ReconcileError::Version(why),
                });
            }
        };
        let text = "the HPA controller was able to get the target's current scale";
        self.set(&mut status, status::ABLE, true, "SucceededGetScale", text);
        let current = execute::replicas(&scale);
        self.remember(key, autoscaler, |memory, now| memory.begin(current, now));
        let decision = self.decide(key, autoscaler, &scale, &mut status).await?;
        if decision.is_rescale {
            let scaled = self.rescale(autoscaler, &objects, scale, &decision, &mut status);
            if let Err(refused) = scaled.await {
                status::observed(&mut status, current, decision.statuses);
                self.write_or_log(autoscaler, status).await;
                return Err(ReconcileError::Rescale(refused));
            }
            let behavior = autoscaler.spec.behavior.as_ref();
            self.remember(key, autoscaler, |memory, now| {
                memory.scaled(behavior, current, decision.replicas, now);
            });
            status.last_scale_time = Some(self.clock.time());
            *action = Action::of(current, decision.replicas);
        }
        COUNTS.wants(key, decision.replicas);
        status.desired_replicas = decision.replicas;
        status::observed(&mut status, current, decision.statuses);
        self.write(autoscaler, status).await?;
        let error = decision.error;
        error.map_or(Ok(()), |why| Err(ReconcileError::Metrics(why)))
    }

    /// Where to go. Metrics that say nothing end the pass, and are told of.
    async fn decide(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        scale: &Scale,
        status: &mut Status,
    ) -> Result<Decision, ReconcileError> {
        let current = execute::replicas(scale);
        match plan::first(current, plan::bounds(autoscaler)) {
            First::Off => {
                let text = "scaling is disabled since the replica count of the target is zero";
                self.set(status, status::ACTIVE, false, "ScalingDisabled", text);
                status::drop_scaled_to_zero(status);
                return Ok(Decision::default());
            }
            First::Bound(replicas, reason) => {
                return Ok(Decision {
                    replicas,
                    reason: reason.to_owned(),
                    is_rescale: true,
                    ..Decision::default()
                });
            }
            First::Measure => {}
        }
        let measured = self.measure(key, autoscaler, scale, status).await;
        let Some((wanted, metric)) = measured.wanted else {
            let why = measured.error.unwrap_or_default();
            status::observed(status, current, measured.statuses);
            self.write_or_log(autoscaler, status.clone()).await;
            let reason = "FailedComputeMetricsReplicas";
            self.tell(autoscaler, EventType::Warning, reason, &why);
            return Err(ReconcileError::Metrics(why));
        };
        let decision = self.step(key, autoscaler, current, wanted.max(0), &metric, status);
        Ok(Decision {
            statuses: measured.statuses,
            error: measured.error,
            ..decision
        })
    }

    /// From what metrics ask for to what is done now.
    fn step(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        current: i32,
        wanted: i32,
        metric: &str,
        status: &mut Status,
    ) -> Decision {
        let behavior = autoscaler.spec.behavior.as_ref();
        let bounds = plan::bounds(autoscaler);
        let step = self.remember(key, autoscaler, |memory, now| {
            memory.step(behavior, bounds, current, wanted, now)
        });
        let (reason, text) = step.able;
        self.set(status, status::ABLE, true, reason, text);
        let (reason, text) = step.limited;
        self.set(status, status::LIMITED, step.is_limited, reason, text);
        Decision {
            replicas: step.replicas,
            reason: plan::reason(current, wanted, metric),
            is_rescale: step.replicas != current,
            ..Decision::default()
        }
    }

    /// Works on what is remembered of an autoscaler; of another one of its name nothing is.
    fn remember<T>(
        &self,
        key: &ObjectKey,
        autoscaler: &HorizontalPodAutoscaler,
        work: impl FnOnce(&mut Memory, Duration) -> T,
    ) -> T {
        let now = self.clock.monotonic().duration_since(self.started);
        let uid = autoscaler.metadata.uid.as_deref().unwrap_or_default();
        let mut memories = self.memories.lock();
        let (of, memory) = memories.entry(key.clone()).or_default();
        if of != uid {
            uid.clone_into(of);
            *memory = Memory::default();
        }
        work(memory, now)
    }

    fn set(&self, status: &mut Status, kind: &str, is_true: bool, reason: &str, text: &str) {
        status::set(status, kind, is_true, reason, text, self.clock.time());
    }

    fn tell(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        kind: EventType,
        reason: &str,
        text: &str,
    ) {
        let about = events::reference(autoscaler);
        self.recorder.event(&about, kind, reason, text);
    }
}

#[cfg(test)]
mod tests;
