//! Deletes Jobs that have been finished for `spec.ttlSecondsAfterFinished`, with their pods.
//!
//! Reads Jobs; deletes them in the foreground, after a look at what the server has: a TTL that was
//! prolonged at the last moment counts. Waits by the queue, and for the next due time alone.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use crate::Context;
use crate::refusal;

const NAME: &str = "ttl-after-finished-controller";
/// As many as upstream's default.
const WORKERS: usize = 5;

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot read the job again before it is deleted")]
    Recheck(#[source] kube::Error),
    #[error("cannot delete the job")]
    Delete(#[source] kube::Error),
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_jobs(context).boxed()
}

async fn run_jobs(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        jobs: context.informers.get(),
        queue: WorkQueue::new(),
        clock: context.clock.clone(),
    });
    let told = controller.clone();
    controller.jobs.on_change(move |change| {
        if !matches!(change, Change::Deleted(_)) && expires(change.object()).is_some() {
            told.queue.add(key_of(change.object().as_ref()));
        }
    });
    if !controller.jobs.synced().await {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.jobs.clone(), context.failures(NAME));
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(NAME, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    jobs: Informer<Job>,
    queue: WorkQueue<ObjectKey>,
    clock: Clock,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(job) = self.jobs.get(key) else {
            return Ok(Requeue::Never);
        };
        if let Some(requeue) = wait(&job, self.clock.now()) {
            return Ok(requeue);
        }
        let jobs = Api::<Job>::namespaced(self.client.clone(), &key.namespace);
        let fresh = jobs.get_opt(&key.name).await;
        let Some(fresh) = fresh.map_err(ReconcileError::Recheck)? else {
            return Ok(Requeue::Never);
        };
        if let Some(requeue) = wait(&fresh, self.clock.now()) {
            return Ok(requeue);
        }
        let exactly = coracle_client::patch::delete_exactly(&fresh);
        let parameters = kube::api::DeleteParams {
            preconditions: exactly.preconditions,
            ..kube::api::DeleteParams::foreground()
        };
        match jobs.delete(&key.name, &parameters).await {
            Err(error) if !refusal::is_not_found(&error) => Err(ReconcileError::Delete(error)),
            _ => Ok(Requeue::Never),
        }
    }
}

/// When to look again; `None` when the job's time is over.
fn wait(job: &Job, now: Timestamp) -> Option<Requeue> {
    let Some(expires) = expires(job) else {
        return Some(Requeue::Never);
    };
    let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
    (!left.is_zero()).then_some(Requeue::After(left))
}

/// When a finished job is to go, if it is.
fn expires(job: &Job) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    let end = conditions
        .find(|one| matches!(one.type_.as_str(), "Complete" | "Failed") && one.status == "True")?;
    let finished = end.last_transition_time.as_ref()?.0;
    finished
        .checked_add(SignedDuration::from_secs(i64::from(seconds)))
        .ok()
}

#[cfg(test)]
mod tests;
