//! Carries out a plan: pods first, then the status and the finalizers of what it counts.

use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_client::control_loop::Requeue;
use coracle_client::events::{self, EventType};
use coracle_client::patch;
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::conditions::COMPLETE;
use super::manage::Action;
use super::plan::Pass;
use super::seen::{self, FINALIZER, has_finalizer};
use super::track::{self, Counting, Done, Turn};
use super::{Controller, template};
use crate::ownership::ClaimError;
use crate::pod_control::PodControl;
use crate::{pods, refusal};

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot create pods")]
    Create(#[source] kube::Error),
    #[error("cannot delete pods")]
    Delete(#[source] kube::Error),
    #[error("cannot remove the finalizer of pods")]
    Release(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

/// One pass's view of the server.
pub(super) struct Work<'a> {
    pub controller: &'a Controller,
    pub key: &'a ObjectKey,
    pub uid: &'a str,
    pub about: ObjectReference,
    pub jobs: Api<Job>,
    pub pods: Api<Pod>,
}

impl<'a> Work<'a> {
    pub(super) fn new(controller: &'a Controller, key: &'a ObjectKey, job: &'a Job) -> Self {
        let client = &controller.client;
        Self {
            controller,
            key,
            uid: job.metadata.uid.as_deref().unwrap_or_default(),
            about: events::reference(job),
            jobs: Api::namespaced(client.clone(), &key.namespace),
            pods: Api::namespaced(client.clone(), &key.namespace),
        }
    }

    pub(super) async fn execute(
        &self,
        mut pass: Pass<'_>,
        action: Action,
        now: Timestamp,
    ) -> Result<Requeue, ReconcileError> {
        let (done, managed) = self.manage(&pass, &action).await;
        let turn = pass.acted(&action, done, now);
        let counting = pass.count_finished(now);
        self.count(&pass, counting, turn, now).await?;
        managed?;
        let wait = match action {
            Action::Wait(wait) => Some(wait),
            _ => None,
        };
        // What ended needs no deadline.
        let deadline = pass.deadline_in.filter(|_| pass.end.is_none());
        let next = wait.into_iter().chain(deadline).min();
        Ok(next.map_or(Requeue::Never, Requeue::After))
    }

    async fn manage(&self, pass: &Pass<'_>, action: &Action) -> (Done, Result<(), ReconcileError>) {
        let (expectations, control) = (&self.controller.expectations, self.control(pass));
        match action {
            Action::End(pods) => self.remove(&control, pods, false).await,
            Action::Remove(pods) => {
                let uids = pods.iter().map(|pod| seen::uid(pod).to_owned());
                expectations.expect_deletions(self.key, uids);
                self.remove(&control, pods, true).await
            }
            Action::Create(indexes) => {
                expectations.expect_creations(self.key, indexes.len());
                let pod = |number: usize| template::pod(pass, indexes[number]);
                let (created, outcome) = control.create_counted(indexes.len(), pod).await;
                let done = Done {
                    created: i32::try_from(created).unwrap_or(i32::MAX),
                    ..Done::default()
                };
                (done, outcome.map_err(ReconcileError::Create))
            }
            Action::Wait(_) | Action::Nothing | Action::NotNow => (Done::default(), Ok(())),
        }
    }

    fn control<'s>(&'s self, pass: &'s Pass<'_>) -> PodControl<'s, Job> {
        PodControl {
            key: self.key,
            owner: pass.job,
            pods: &self.pods,
            expectations: &self.controller.expectations,
            recorder: &self.controller.recorder,
        }
    }

    async fn remove(
        &self,
        control: &PodControl<'_, Job>,
        pods: &[Arc<Pod>],
        uncounted: bool,
    ) -> (Done, Result<(), ReconcileError>) {
        let removals = pods
            .iter()
            .map(|pod| self.remove_one(control, pod, uncounted));
        let outcomes = join_all(removals).await;
        let (mut done, mut failure) = (Done::default(), Ok(()));
        for (pod, outcome) in pods.iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    done.removed += 1;
                    done.removed_ready += i32::from(pods::is_ready(pod));
                }
                Err(error) => failure = Err(ReconcileError::Delete(error)),
            }
        }
        (done, failure)
    }

    /// A pod that shall not be counted loses its finalizer first.
    async fn remove_one(
        &self,
        control: &PodControl<'_, Job>,
        pod: &Pod,
        uncounted: bool,
    ) -> Result<(), kube::Error> {
        if uncounted && has_finalizer(pod) {
            match release(&self.pods, pod).await {
                Err(error) if !refusal::is_not_found(&error) => {
                    control.not_deleted(pod);
                    return Err(error);
                }
                _ => {}
            }
        }
        control.delete_one(pod).await
    }

    /// The status with the uids of what finished; their finalizers; the status that counts them.
    async fn count(
        &self,
        pass: &Pass<'_>,
        counting: Counting,
        turn: Option<Turn>,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let Counting {
            release,
            mut tracked,
            more,
        } = counting;
        let mut job = pass.job.clone();
        let wrote = self.write(&mut job, &pass.status).await?;
        if wrote {
            self.controller.memory.failed(self.uid, pass.backoff);
        }
        if let Some(turn) = turn {
            let (reason, message) = match turn {
                Turn::Suspended => ("Suspended", "Job suspended"),
                Turn::Resumed => ("Resumed", "Job resumed"),
            };
            self.event(EventType::Normal, reason, message.to_owned());
        }
        let failure = self.release_all(&release, &mut tracked).await;
        let mut status = job.status.clone().unwrap_or_default();
        track::settle(&mut status, &tracked);
        let ended = failure.is_none()
            && !more
            && track::finish(&mut status, pass.end.as_ref(), pass.terminating, now);
        self.write(&mut job, &status).await?;
        if let (true, Some(end)) = (ended, &pass.end) {
            self.tell_end(&job, end);
        }
        failure.map_or(Ok(()), |error| Err(ReconcileError::Release(error)))
    }

    /// Removes finalizers; who lost it is no longer tracked.
    async fn release_all(
        &self,
        pods: &[Arc<Pod>],
        tracked: &mut std::collections::HashSet<String>,
    ) -> Option<kube::Error> {
        if pods.is_empty() {
            return None;
        }
        let memory = &self.controller.memory;
        memory.release(self.uid, pods.iter().map(|pod| seen::uid(pod).to_owned()));
        let outcomes = join_all(pods.iter().map(|pod| release(&self.pods, pod))).await;
        let mut failure = None;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            if let Err(error) = outcome {
                // No change of the pod will come that shows it.
                memory.released(self.uid, seen::uid(pod));
                if !refusal::is_not_found(&error) {
                    failure = Some(error);
                    continue;
                }
            }
            tracked.remove(seen::uid(pod));
        }
        failure
    }

    /// Writes the status if it differs, on what was looked at.
    async fn write(&self, job: &mut Job, status: &JobStatus) -> Result<bool, ReconcileError> {
        let status = track::normalized(status.clone());
        if status == track::normalized(job.status.clone().unwrap_or_default()) {
            return Ok(false);
        }
        job.status = Some(status);
        let written = patch::replace_status(&self.jobs, job).await;
        *job = written.map_err(ReconcileError::Status)?;
        let memory = &self.controller.memory;
        memory.wrote(self.uid, job.metadata.resource_version.as_deref());
        Ok(true)
    }

    fn tell_end(&self, job: &Job, end: &JobCondition) {
        if end.type_ != COMPLETE {
            let message = end.message.clone().unwrap_or_default();
            let reason = end.reason.as_deref().unwrap_or_default();
            return self.event(EventType::Warning, reason, message);
        }
        let completions = job.spec.as_ref().and_then(|spec| spec.completions);
        let succeeded = job.status.as_ref().and_then(|status| status.succeeded);
        if completions.is_some_and(|wanted| succeeded.unwrap_or(0) > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            self.event(
                EventType::Warning,
                "TooManySucceededPods",
                message.to_owned(),
            );
        }
        self.event(EventType::Normal, "Completed", "Job completed".to_owned());
    }

    fn event(&self, kind: EventType, reason: &str, message: String) {
        self.controller
            .recorder
            .event(&self.about, kind, reason, message);
    }
}

/// Removes the finalizer, and no other.
pub(super) async fn release(pods: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    let body = json!({"metadata": {
        "uid": pod.metadata.uid,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    }});
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let (parameters, patch) = (PatchParams::default(), Patch::Strategic(body));
    pods.patch(name, &parameters, &patch).await.map(drop)
}
