//! Which sets to look at when something changed, and which expectations that settles.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::kind::Replicated;
use super::{Change, Controller, ObjectKey, controller_of, key_of, pods};

/// Times carry whole seconds: look again when the last of them is surely over.
const ROUNDING: Duration = Duration::from_secs(1);

impl<K: Replicated> Controller<K> {
    pub(super) fn set_changed(&self, change: &Change<K>) {
        let key = key_of(change.object().as_ref());
        if matches!(change, Change::Deleted(_)) {
            // Its successor of the same name starts with a clean slate.
            self.expectations.forget(&key);
        }
        self.queue.add(key);
    }

    pub(super) fn pod_changed(&self, change: &Change<Pod>) {
        match change {
            Change::Added(pod) if pods::is_deleting(pod) => self.pod_going(pod),
            Change::Added(pod) => self.pod_added(pod),
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_going(pod),
            Change::Resync(_) => {} // The sets have their own.
        }
    }

    fn pod_added(&self, pod: &Pod) {
        match controller_of(&pod.metadata) {
            Some(controller) => {
                if let Some(key) = self.resolve(pod, controller) {
                    self.expectations.creation_observed(&key);
                    self.add_counted(key);
                }
            }
            None => self.offer(pod),
        }
    }

    fn pod_updated(&self, old: &Pod, new: &Arc<Pod>) {
        if pods::is_deleting(new) {
            // Seen once more when it is gone; a deletion is counted by uid, so once.
            self.pod_going(new);
            if old.metadata.labels != new.metadata.labels {
                self.pod_going(old);
            }
            return;
        }
        let (before, after) = (controller_of(&old.metadata), controller_of(&new.metadata));
        let moved = before != after;
        if let (true, Some(key)) = (moved, before.and_then(|before| self.resolve(old, before))) {
            self.queue.add(key);
        }
        let Some(controller) = after else {
            if moved || old.metadata.labels != new.metadata.labels {
                self.offer(new);
            }
            return;
        };
        let Some(key) = self.resolve(new, controller) else {
            return;
        };
        if !pods::is_ready(old) && pods::is_ready(new) {
            let set = self.sets.get(&key);
            let min_ready_seconds = set
                .and_then(|set| set.spec().map(|spec| spec.min_ready_seconds))
                .unwrap_or(0);
            if min_ready_seconds > 0 {
                let wait = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
                self.queue.add_after(key.clone(), wait + ROUNDING);
            }
        }
        match pods::is_active(old) == pods::is_active(new) && !moved {
            true => self.count(key),
            false => self.queue.add(key),
        }
    }

    /// The number of pods is as it was: there is something to count and nothing to do.
    fn count(&self, key: ObjectKey) {
        let gathered = self.own_writes.gather(&key);
        self.queue.add_after(key, gathered);
    }

    /// A pod came or went. While others are still waited for there is nothing to do.
    fn add_counted(&self, key: ObjectKey) {
        match self.expectations.satisfied(&key) {
            true => self.queue.add(key),
            false => self.count(key),
        }
    }

    /// Deleted, or asked to stop, which counts the same.
    fn pod_going(&self, pod: &Pod) {
        let Some(controller) = controller_of(&pod.metadata) else {
            return;
        };
        let Some(key) = self.resolve(pod, controller) else {
            return;
        };
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        self.expectations.deletion_observed(&key, uid);
        self.add_counted(key);
    }

    /// An orphan is offered to every set that it matches; the first to adopt it wins.
    fn offer(&self, pod: &Pod) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for set in self.sets.list_namespace(namespace) {
            let labels = pod.metadata.labels.as_ref();
            if set.spec().is_some_and(|spec| spec.selector.matches(labels)) {
                self.queue.add(key_of(set.as_ref()));
            }
        }
    }

    /// The set that a pod names as its controller, if it is of this kind and still the same one.
    fn resolve(&self, pod: &Pod, controller: &OwnerReference) -> Option<ObjectKey> {
        if controller.kind != K::kind(&()) {
            return None;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, &controller.name);
        let set = self.sets.get(&key)?;
        (set.meta().uid.as_ref() == Some(&controller.uid)).then_some(key)
    }
}
