//! Starts Jobs by the clock.
//!
//! Reads CronJobs, and Jobs by their controller's uid; writes Jobs and `status`. The name of a job
//! is made of the minute it was due, so that no time is served twice, whenever the loop dies.
//! Schedules without a zone are in UTC. Sleeps by the queue, until the next due time alone.

use std::sync::Arc;

use coracle_api::cron;
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::patch;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::Api;

use crate::Context;
use crate::ownership::{self, controller_of};

mod plan; // Pure. Start reading here.
mod timetable;

mod execute;
mod history;

use execute::{ReconcileError, Work};
use timetable::Timetable;

/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "cronjob-controller";
/// As many as upstream's default.
const WORKERS: usize = 5;

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_cron_jobs(context).boxed()
}

async fn run_cron_jobs(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        cron_jobs: context.informers.get(),
        jobs: context.informers.get(),
        queue: WorkQueue::new(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.jobs);
    let told = controller.clone();
    controller
        .cron_jobs
        .on_change(move |change| told.cron_job_changed(change));
    let told = controller.clone();
    controller
        .jobs
        .on_change(move |change| told.job_changed(change));
    if !(controller.cron_jobs.synced().await && controller.jobs.synced().await) {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.cron_jobs.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(COMPONENT, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    cron_jobs: Informer<CronJob>,
    jobs: Informer<Job>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
    clock: Clock,
}

impl Controller {
    fn cron_job_changed(&self, change: &Change<CronJob>) {
        let key = key_of(change.object().as_ref());
        if let Change::Updated { old, new } = change {
            let times = |cron: &CronJob| (cron.spec.schedule.clone(), cron.spec.time_zone.clone());
            if times(old) != times(new) {
                // A time of the new schedule that lies in the past was not missed.
                return self.rescheduled(key, new);
            }
        }
        self.queue.add(key);
    }

    fn rescheduled(&self, key: ObjectKey, cron: &CronJob) {
        let status = cron.status.clone().unwrap_or_default();
        match table_of(cron) {
            Ok(table) => {
                let next = plan::next_in(cron, &status, &table, self.clock.now());
                if let Some(next) = next {
                    self.queue.add_after(key, next);
                }
            }
            Err(_) => {
                let schedule = schedule_of(cron);
                self.recorder.event(
                    &events::reference(cron),
                    EventType::Warning,
                    "UnParseableCronJobSchedule",
                    format!("unparseable schedule for cronjob: {schedule}"),
                );
            }
        }
    }

    fn job_changed(&self, change: &Change<Job>) {
        let owners = match change {
            Change::Updated { old, new } => [Some(old), Some(new)],
            Change::Added(job) | Change::Deleted(job) => [Some(job), None],
            Change::Resync(_) => return, // The cron jobs have their own.
        };
        for job in owners.into_iter().flatten() {
            let Some(owner) = controller_of(&job.metadata).filter(|it| it.kind == "CronJob") else {
                continue;
            };
            let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
            let key = ObjectKey::new(namespace, &owner.name);
            let cron = self.cron_jobs.get(&key);
            if cron.is_some_and(|cron| cron.metadata.uid.as_ref() == Some(&owner.uid)) {
                self.queue.add(key);
            }
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(cron) = self.cron_jobs.get(key) else {
            return Ok(Requeue::Never);
        };
        let uid = cron.metadata.uid.as_deref().unwrap_or_default();
        let mut jobs = ownership::owned(&self.jobs, uid);
        jobs.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut work = Work::new(self, key, &cron);
        work.clean_up(&jobs).await;
        let outcome = self.look_after(&mut work, &jobs, self.clock.now()).await;
        let mut next = CronJob::clone(&work.cron);
        next.status = Some(work.status.clone());
        if work.changed {
            let api = Api::<CronJob>::namespaced(self.client.clone(), &key.namespace);
            let written = patch::replace_status(&api, &next).await;
            written.map_err(ReconcileError::Status)?;
        }
        outcome
    }

    async fn look_after(
        &self,
        work: &mut Work<'_>,
        jobs: &[Arc<Job>],
        now: Timestamp,
    ) -> Result<Requeue, ReconcileError> {
        work.follow(jobs).await?;
        work.find_missing(jobs).await?;
        let cron = work.cron.clone();
        if cron.metadata.deletion_timestamp.is_some() {
            return Ok(Requeue::Never);
        }
        if let Some((zone, error)) = bad_zone(&cron) {
            let message = format!("invalid timeZone: {zone:?}: {error}");
            work.event(EventType::Warning, "UnknownTimeZone", message);
            return Ok(Requeue::Never);
        }
        if cron.spec.suspend == Some(true) {
            return Ok(Requeue::Never);
        }
        let schedule = schedule_of(&cron);
        if schedule.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule {schedule:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                 details"
            );
            work.event(EventType::Warning, "UnsupportedSchedule", message);
        }
        let table = match table_of(&cron) {
            Ok(table) => table,
            Err(error) => {
                let message = format!("unparseable schedule: {schedule:?} : {error}");
                work.event(EventType::Warning, "UnparseableSchedule", message);
                return Ok(Requeue::Never);
            }
        };
        match plan::plan(&cron, &work.status, &table, now) {
            Ok(plan) => work.execute(plan, &table, now).await,
            Err(error) => {
                let message = format!("invalid schedule: {schedule} : {error}");
                work.event(EventType::Warning, "InvalidSchedule", message);
                Ok(Requeue::Never)
            }
        }
    }
}

fn schedule_of(cron: &CronJob) -> &str {
    &cron.spec.schedule
}

fn zone_of(cron: &CronJob) -> Option<&str> {
    cron.spec.time_zone.as_deref()
}

/// A schedule that names a zone of its own goes before the field.
fn table_of(cron: &CronJob) -> Result<Timetable, String> {
    Timetable::parse(schedule_of(cron), zone_of(cron))
}

fn bad_zone(cron: &CronJob) -> Option<(&str, String)> {
    let zone = zone_of(cron)?;
    cron::zone_error(zone).map(|error| (zone, error))
}

#[cfg(test)]
mod tests;
