//! Which jobs, and which orphans, a change of a job or of a pod is about.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::orphans::Orphans;
use super::seen::{self, has_finalizer};
use super::spec::{self, Spec};
use super::{Controller, SYNC_BATCH};
use crate::ownership::controller_of;
use crate::pods;

impl Controller {
    pub(super) fn job_changed(&self, change: &Change<Job>) {
        let job = change.object();
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let key = key_of(job.as_ref());
        match change {
            Change::Deleted(_) => {
                // Its successor of the same name starts with a clean slate.
                self.memory.forget(uid);
                self.expectations.forget(&key);
                self.orphans.add(Orphans::of_job(&key.namespace, uid));
            }
            Change::Updated { .. } | Change::Added(_) if spec::is_finished(job) => {
                self.memory.forget(uid);
                self.orphans.add(Orphans::of_job(&key.namespace, uid));
            }
            // Statuses change as pods do, several at a time.
            Change::Updated { old, new } if old.metadata.generation == new.metadata.generation => {
                self.queue.add_after(key, SYNC_BATCH);
            }
            _ => self.queue.add(key),
        }
    }

    pub(super) fn pod_changed(&self, change: &Change<Pod>) {
        match change {
            Change::Added(pod) if pods::is_deleting(pod) => self.pod_going(pod, false),
            Change::Added(pod) => self.pod_added(pod),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_going(pod, true),
            Change::Resync(_) => {} // The jobs have their own.
        }
    }

    fn pod_added(&self, pod: &Pod) {
        let Some(controller) = controller_of(&pod.metadata) else {
            self.orphan(pod, true);
            return;
        };
        if let Some(job) = self.resolve(pod, controller) {
            let key = key_of(job.as_ref());
            self.expectations.creation_observed(&key);
            self.queue.add_after(key, SYNC_BATCH);
        }
    }

    fn pod_updated(&self, old: &Pod, new: &Arc<Pod>) {
        if pods::is_deleting(new) {
            self.pod_going(new, false);
            return;
        }
        let (before, after) = (controller_of(&old.metadata), controller_of(&new.metadata));
        let moved = before != after;
        if let (true, Some(job)) = (moved, before.and_then(|before| self.resolve(old, before))) {
            self.pod_of(&job, new);
        }
        match after {
            Some(after) => {
                if let Some(job) = self.resolve(new, after) {
                    self.pod_of(&job, new);
                }
            }
            None => self.orphan(new, moved || old.metadata.labels != new.metadata.labels),
        }
    }

    fn pod_of(&self, job: &Job, pod: &Pod) {
        if !has_finalizer(pod) {
            let uid = job.metadata.uid.as_deref().unwrap_or_default();
            self.memory.released(uid, seen::uid(pod));
        }
        self.queue.add_after(key_of(job), SYNC_BATCH);
    }

    /// Deleted, or asked to stop, which counts the same.
    fn pod_going(&self, pod: &Pod, gone: bool) {
        let tracked = has_finalizer(pod);
        let controller = controller_of(&pod.metadata);
        let job = controller.and_then(|controller| self.resolve(pod, controller));
        let Some(job) = job.filter(|job| !spec::is_finished(job)) else {
            if tracked {
                self.orphans.add(Orphans::Pod(key_of(pod)));
            }
            return;
        };
        let (key, uid) = (key_of(job.as_ref()), seen::uid(pod));
        self.expectations.deletion_observed(&key, uid);
        if gone || !tracked {
            let job = job.metadata.uid.as_deref().unwrap_or_default();
            self.memory.released(job, uid);
        }
        self.queue.add_after(key, SYNC_BATCH);
    }

    /// An orphan loses the finalizer; it is offered to every job that it matches.
    fn orphan(&self, pod: &Pod, offered: bool) {
        if has_finalizer(pod) {
            self.orphans.add(Orphans::Pod(key_of(pod)));
        }
        if !offered {
            return;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for job in self.jobs.list_namespace(namespace) {
            let labels = pod.metadata.labels.as_ref();
            if Spec::of(&job).is_some_and(|spec| spec.selector.matches(labels)) {
                self.queue.add_after(key_of(job.as_ref()), SYNC_BATCH);
            }
        }
    }

    /// The job that a pod names as its controller, if it is still the same one.
    pub(super) fn resolve(&self, pod: &Pod, controller: &OwnerReference) -> Option<Arc<Job>> {
        if controller.kind != "Job" {
            return None;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let job = self
            .jobs
            .get(&ObjectKey::new(namespace, &controller.name))?;
        (job.metadata.uid.as_ref() == Some(&controller.uid)).then_some(job)
    }
}
