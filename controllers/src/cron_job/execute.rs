//! Follows the jobs of a cron job, and carries out what is decided.

use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_client::control_loop::Requeue;
use coracle_client::events::{self, EventType};
use coracle_client::patch;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use super::Controller;
use super::history::{end_of, surplus};
use super::plan::{self, Decision, Plan};
use super::timetable::{self, Timetable};
use crate::ownership::{controller_reference, is_controlled_by};
use crate::refusal;

const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error("cannot read a job")]
    Read(#[source] kube::Error),
    #[error("cannot delete a job that another replaces")]
    Replace(#[source] kube::Error),
    #[error("cannot create a job")]
    Create(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

/// One pass over one cron job.
pub(super) struct Work<'a> {
    controller: &'a Controller,
    pub cron: Arc<CronJob>,
    pub status: CronJobStatus,
    /// The status is to be written.
    pub changed: bool,
    about: ObjectReference,
    jobs: Api<Job>,
    cron_jobs: Api<CronJob>,
}

impl<'a> Work<'a> {
    pub(super) fn new(controller: &'a Controller, key: &ObjectKey, cron: &Arc<CronJob>) -> Self {
        let client = &controller.client;
        Self {
            controller,
            cron: cron.clone(),
            status: cron.status.clone().unwrap_or_default(),
            changed: false,
            about: events::reference(cron.as_ref()),
            jobs: Api::namespaced(client.clone(), &key.namespace),
            cron_jobs: Api::namespaced(client.clone(), &key.namespace),
        }
    }

    pub(super) fn event(&self, kind: EventType, reason: &str, message: String) {
        self.controller
            .recorder
            .event(&self.about, kind, reason, message);
    }

    /// Deletes what the history has too many of.
    pub(super) async fn clean_up(&mut self, jobs: &[Arc<Job>]) {
        for job in surplus(&self.cron, jobs) {
            // Said in an event; the next pass tries again.
            let _ = self.delete(&job).await;
        }
    }

    async fn delete(&mut self, job: &Job) -> Result<(), kube::Error> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let parameters = DeleteParams {
            preconditions: patch::delete_exactly(job).preconditions,
            ..DeleteParams::background()
        };
        match self.jobs.delete(name, &parameters).await {
            Err(error) if !refusal::is_not_found(&error) => {
                let message = format!("Deleted job: {}", refusal::message(&error));
                self.event(EventType::Warning, "FailedDelete", message);
                return Err(error);
            }
            Err(_) => {} // Somebody else was faster.
            Ok(_) => {
                let message = format!("Deleted job {name}");
                self.event(EventType::Normal, "SuccessfulDelete", message);
            }
        }
        self.strike(job.metadata.uid.as_deref());
        Ok(())
    }

    fn is_active(&self, uid: Option<&str>) -> bool {
        let mut active = self.status.active.iter().flatten();
        active.any(|one| one.uid.as_deref() == uid)
    }

    /// Takes a job off the list of active ones.
    fn strike(&mut self, uid: Option<&str>) {
        if self.is_active(uid) {
            let active = self.status.active.take().unwrap_or_default();
            let left = active.into_iter().filter(|one| one.uid.as_deref() != uid);
            let left: Vec<ObjectReference> = left.collect();
            self.status.active = (!left.is_empty()).then_some(left);
            self.changed = true;
        }
    }

    /// Takes in what became of the jobs.
    pub(super) async fn follow(&mut self, jobs: &[Arc<Job>]) -> Result<(), ReconcileError> {
        for job in jobs {
            let (uid, name) = (job.metadata.uid.as_deref(), job.metadata.name.as_deref());
            let name = name.unwrap_or_default();
            let listed = self.is_active(uid);
            match end_of(job) {
                None if listed => {}
                None => {
                    if self.refreshed(uid).await? {
                        continue;
                    }
                    let message =
                        format!("Saw a job that the controller did not create or forgot: {name}");
                    self.event(EventType::Warning, "UnexpectedJob", message);
                }
                Some(end) => {
                    if listed {
                        self.strike(uid);
                        let message = format!("Saw completed job: {name}, condition: {end}");
                        self.event(EventType::Normal, "SawCompletedJob", message);
                    }
                    if end == "Complete" {
                        self.succeeded(job);
                    }
                }
            }
        }
        Ok(())
    }

    /// The cache may lag behind the job's start: what the server has lists it then, and is used
    /// from here on.
    async fn refreshed(&mut self, uid: Option<&str>) -> Result<bool, ReconcileError> {
        let name = self.cron.metadata.name.clone().unwrap_or_default();
        let fresh = self
            .cron_jobs
            .get(&name)
            .await
            .map_err(ReconcileError::Read)?;
        let status = fresh.status.clone().unwrap_or_default();
        let mut active = status.active.iter().flatten();
        let same = fresh.metadata.uid == self.cron.metadata.uid;
        if !same || !active.any(|one| one.uid.as_deref() == uid) {
            return Ok(false);
        }
        (self.status, self.cron) = (status, Arc::new(fresh));
        Ok(true)
    }

    fn succeeded(&mut self, job: &Job) {
        let ended = job
            .status
            .as_ref()
            .and_then(|status| status.completion_time.clone());
        let last = &self.status.last_successful_time;
        let later = match (&ended, last) {
            (Some(ended), Some(last)) => ended.0 > last.0,
            (ended, None) => ended.is_some(),
            (None, Some(_)) => false,
        };
        if later {
            self.status.last_successful_time = ended;
            self.changed = true;
        }
    }

    /// Strikes jobs that are gone; the server is asked, as the cache may not have them yet.
    pub(super) async fn find_missing(&mut self, jobs: &[Arc<Job>]) -> Result<(), ReconcileError> {
        let known = |one: &ObjectReference| jobs.iter().any(|job| job.metadata.uid == one.uid);
        let active = self.status.active.clone().unwrap_or_default();
        for one in active.iter().filter(|one| !known(one)) {
            let name = one.name.as_deref().unwrap_or_default();
            let found = self
                .jobs
                .get_opt(name)
                .await
                .map_err(ReconcileError::Read)?;
            if found.is_none() {
                let message = format!("Active job went missing: {name}");
                self.event(EventType::Normal, "MissingJob", message);
                self.strike(one.uid.as_deref());
            }
        }
        Ok(())
    }

    pub(super) async fn execute(
        &mut self,
        plan: Plan,
        table: &Timetable,
        now: Timestamp,
    ) -> Result<Requeue, ReconcileError> {
        if plan.missed_many {
            let message = "too many missed start times. Set or decrease \
                           .spec.startingDeadlineSeconds or check clock skew";
            self.event(EventType::Warning, "TooManyMissedTimes", message.to_owned());
        }
        let mut again_in = plan.again_in;
        match plan.decision {
            Decision::Wait | Decision::Done => {}
            Decision::TooLate(due) => {
                let due = due.strftime("%a, %d %b %Y %H:%M:%S +0000");
                let message = format!("Missed scheduled time to start a job: {due}");
                self.event(EventType::Warning, "MissSchedule", message);
            }
            Decision::Forbidden => {
                let message = "Not starting job because prior execution is running and \
                               concurrency policy is Forbid";
                self.event(EventType::Normal, "JobAlreadyActive", message.to_owned());
            }
            Decision::Start(due) => {
                self.replace().await?;
                if self.start(due).await? {
                    again_in = plan::next_in(&self.cron, &self.status, table, now);
                }
            }
        }
        Ok(again_in.map_or(Requeue::Never, Requeue::After))
    }

    /// Deletes the jobs that still run, where the policy says so.
    async fn replace(&mut self) -> Result<(), ReconcileError> {
        if plan::policy(&self.cron) != "Replace" {
            return Ok(());
        }
        for one in self.status.active.clone().unwrap_or_default() {
            let name = one.name.as_deref().unwrap_or_default();
            let job = match self.jobs.get(name).await {
                Ok(job) => job,
                Err(error) => {
                    let message = format!("Get job: {}", refusal::message(&error));
                    self.event(EventType::Warning, "FailedGet", message);
                    return Err(ReconcileError::Read(error));
                }
            };
            self.delete(&job).await.map_err(ReconcileError::Replace)?;
        }
        Ok(())
    }

    /// False when somebody else has made the job, and minds the status.
    async fn start(&mut self, due: Timestamp) -> Result<bool, ReconcileError> {
        let wanted = job(&self.cron, due);
        let job = match self.jobs.create(&PostParams::default(), &wanted).await {
            Ok(job) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                let message = format!("Created job {name}");
                self.event(EventType::Normal, "SuccessfulCreate", message);
                job
            }
            Err(error) if refusal::is_already_exists(&error) => {
                let name = wanted.metadata.name.as_deref().unwrap_or_default();
                let job = self.jobs.get(name).await.map_err(ReconcileError::Read)?;
                let uid = self.cron.metadata.uid.as_deref().unwrap_or_default();
                let listed = self.is_active(job.metadata.uid.as_deref());
                if !is_controlled_by(&job.metadata, uid) || listed {
                    return Ok(false);
                }
                job // The loop died before it could say so.
            }
            Err(error) => {
                if !refusal::is_namespace_terminating(&error) {
                    let message = format!("Error creating job: {}", refusal::message(&error));
                    self.event(EventType::Warning, "FailedCreate", message);
                }
                return Err(ReconcileError::Create(error));
            }
        };
        let active = self.status.active.get_or_insert_default();
        active.push(events::reference(&job));
        self.status.last_schedule_time = Some(Time(due));
        self.changed = true;
        Ok(true)
    }
}

/// The job of a time.
fn job(cron: &CronJob, due: Timestamp) -> Job {
    let template = cron.spec.job_template.clone();
    let meta = template.metadata.unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), rfc3339(due, super::zone_of(cron)));
    Job {
        metadata: ObjectMeta {
            name: Some(plan::job_name(cron, due)),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![controller_reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// In the zone's own time, with its distance from UTC.
fn rfc3339(time: Timestamp, zone: Option<&str>) -> String {
    let zone = timetable::zone_of(zone.unwrap_or_default()).unwrap_or(jiff::tz::TimeZone::UTC);
    let local = zone
        .to_datetime(time)
        .strftime("%Y-%m-%dT%H:%M:%S")
        .to_string();
    match zone.to_offset(time).seconds() / 60 {
        0 => format!("{local}Z"),
        minutes => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let minutes = minutes.abs();
            format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
pub(super) fn made_for(cron: &CronJob, due: Timestamp) -> Job {
    job(cron, due)
}
