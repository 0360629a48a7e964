//! Runs the pods of Jobs until enough of them succeeded, or too many failed.
//!
//! Reads Jobs, and pods by their controller's uid; writes pods and `status`. A finished pod keeps
//! a finalizer until the status has counted it, so that none is lost or counted twice, whenever
//! the loop dies (see `track`). Never picks a node, sleeps or retries: the queue does that.
//! Leaves alone jobs that `spec.managedBy` gives to somebody else.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::expectations::Expectations;
use coracle_client::informer::Informer;
use coracle_client::queue::{Backoff, WorkQueue};
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::Context;
use crate::ownership::{self, Claim, claim};

mod plan; // Pure. Start reading here.

mod manage; // How many pods.
mod track; // What the status counts.

mod backoff;
mod conditions;
mod failure_policy;
mod intervals;
mod seen;
mod spec;
mod success_policy;
mod template;

mod execute;
mod memory;
mod orphans;
mod watch;

use execute::{ReconcileError, Work};
use memory::Memory;
use orphans::Orphans;
use spec::Spec;

/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "job-controller";
/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;
/// Pods of a job finish several at a time: one pass looks at all that did in so long.
const SYNC_BATCH: Duration = Duration::from_secs(1);
/// Of a job that the server refuses to serve.
const BACKOFF: Backoff = Backoff {
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_jobs(context).boxed()
}

async fn run_jobs(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        jobs: context.informers.get(),
        pods: context.informers.get(),
        queue: WorkQueue::with_backoff(BACKOFF),
        orphans: WorkQueue::with_backoff(BACKOFF),
        expectations: Expectations::new(),
        memory: Memory::default(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.pods);
    let told = controller.clone();
    controller
        .jobs
        .on_change(move |change| told.job_changed(change));
    let told = controller.clone();
    controller
        .pods
        .on_change(move |change| told.pod_changed(change));
    if !(controller.jobs.synced().await && controller.pods.synced().await) {
        return;
    }
    let (queue, orphans) = (controller.queue.clone(), controller.orphans.clone());
    let release = control_loop::with(controller.clone(), |it, at| {
        Box::pin(it.release_orphans(at))
    });
    let (pods, recorder) = (controller.pods.clone(), controller.recorder.clone());
    let release = release.telling_of(recorder, move |at| {
        let pods = orphans::pods(at, &pods);
        pods.into_iter().map(|pod| events::reference(&*pod))
    });
    let (objects, recorder) = (controller.jobs.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    let shutdown = context.shutdown;
    tokio::join!(
        control_loop::run(
            "job-orphan-pod",
            orphans,
            WORKERS,
            release,
            shutdown.clone()
        ),
        control_loop::run(COMPONENT, queue, WORKERS, reconcile, shutdown),
    );
}

struct Controller {
    client: Client,
    jobs: Informer<Job>,
    pods: Informer<Pod>,
    queue: WorkQueue<ObjectKey>,
    orphans: WorkQueue<Orphans>,
    expectations: Expectations,
    memory: Memory,
    recorder: Recorder,
    clock: Clock,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(job) = self.jobs.get(key) else {
            self.expectations.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        if spec::is_managed_elsewhere(&job) || spec::is_finished(&job) {
            return Ok(Requeue::Never);
        }
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let outcome = self.look_after(key, &job, uid).await;
        let known = self.jobs.get(key);
        if known.is_none_or(|known| known.metadata.uid != job.metadata.uid) {
            // It went meanwhile, and what it waited for with it.
            self.memory.forget(uid);
            self.expectations.forget(key);
        }
        outcome
    }

    async fn look_after(
        &self,
        key: &ObjectKey,
        job: &Job,
        uid: &str,
    ) -> Result<Requeue, ReconcileError> {
        let version = job.metadata.resource_version.as_deref();
        if !self.memory.is_current(uid, version) {
            return Ok(Requeue::After(SYNC_BATCH));
        }
        if !spec::has_known_mode(job) {
            let message = "Skipped Job sync because completion mode is unknown";
            let about = events::reference(job);
            let (kind, reason) = (EventType::Warning, "UnknownCompletionMode");
            self.recorder.event(&about, kind, reason, message);
            return Ok(Requeue::Never);
        }
        let Some(spec) = Spec::of(job) else {
            return Ok(Requeue::Never); // No pass can make sense of its selector.
        };
        // Asked before pods are counted: one that comes in between is then waited for.
        let satisfied = self.expectations.satisfied(key);
        let work = Work::new(self, key, job);
        let observed = self.claim(&work, job, &spec, satisfied).await?;
        let now = self.clock.now();
        let (pass, action) = plan::plan(observed, now);
        work.execute(pass, action, now).await
    }

    /// Adopts and releases, and says what is the job's then.
    async fn claim<'a>(
        &self,
        work: &Work<'_>,
        job: &'a Job,
        spec: &'a Spec<'a>,
        satisfied: bool,
    ) -> Result<plan::Observed<'a>, ReconcileError> {
        let (mut own, mut adopt, mut release) = (Vec::new(), Vec::new(), Vec::new());
        let namespace = &work.key.namespace;
        for pod in ownership::owned_or_orphaned(&self.pods, work.uid, namespace) {
            match claim(&job.metadata, &spec.selector, &pod.metadata) {
                Claim::Own => own.push(pod),
                Claim::Adopt => {
                    own.push(pod.clone());
                    adopt.push(pod);
                }
                Claim::Release => release.push(pod),
                Claim::Ignore => {}
            }
        }
        let (jobs, pods) = (&work.jobs, &work.pods);
        let finalizer = Some(seen::FINALIZER);
        ownership::execute_with(jobs, job, pods, &adopt, &release, finalizer).await?;
        let uid_of = |pod: &Arc<Pod>| seen::uid(pod).to_owned();
        Ok(plan::Observed {
            job,
            spec,
            pods: own,
            adopted: adopt.iter().map(uid_of).collect(),
            releasing: self.memory.releasing(work.uid),
            satisfied,
            backoff: self.memory.backoff(work.uid),
        })
    }
}

#[cfg(test)]
mod tests;
