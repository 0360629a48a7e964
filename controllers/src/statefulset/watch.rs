//! Which sets to look at when something changed, and which expectations that settles.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::key_of;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Controller, ObjectKey, claims, selected};
use crate::ownership::controller_of;
use crate::pods;

impl Controller {
    pub(super) fn set_changed(&self, change: &Change<StatefulSet>) {
        let key = key_of(change.object().as_ref());
        if matches!(change, Change::Deleted(_)) {
            // Its successor of the same name starts with a clean slate.
            self.expectations.forget(&key);
        }
        self.queue.add(key);
    }

    pub(super) fn pod_changed(&self, change: &Change<Pod>) {
        match change {
            Change::Added(pod) => {
                match self.owner_of(&pod.metadata) {
                    Some(key) => {
                        self.expectations.creation_observed(&key);
                        self.queue.add(key);
                    }
                    None => self.offer(pod),
                }
                if pods::is_deleting(pod) {
                    self.pod_going(pod);
                }
            }
            Change::Updated { old, new } => self.pod_updated(old, new),
            Change::Deleted(pod) => self.pod_going(pod),
            Change::Resync(_) => {} // The sets have their own.
        }
    }

    fn pod_updated(&self, old: &Pod, new: &Arc<Pod>) {
        if pods::is_deleting(new) {
            // Seen once more when it is gone; a deletion is counted by uid, so once.
            self.pod_going(new);
        }
        let moved = controller_of(&old.metadata) != controller_of(&new.metadata);
        if moved && let Some(key) = self.owner_of(&old.metadata) {
            self.queue.add(key);
        }
        match self.owner_of(&new.metadata) {
            Some(key) => self.queue.add(key),
            None if moved || old.metadata.labels != new.metadata.labels => self.offer(new),
            None => {}
        }
    }

    /// Deleted, or asked to stop, which counts the same.
    fn pod_going(&self, pod: &Pod) {
        if let Some(key) = self.owner_of(&pod.metadata) {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            self.expectations.deletion_observed(&key, uid);
            self.queue.add(key);
        }
    }

    /// A claim that went makes room for its successor, or leaves a pending pod without it.
    pub(super) fn claim_changed(&self, change: &Change<PersistentVolumeClaim>) {
        let Change::Deleted(claim) = change else {
            return;
        };
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        for set in self.sets.list_namespace(namespace_of(&claim.metadata)) {
            let spec = set.spec.as_ref();
            if spec.is_some_and(|spec| claims::may_be_of(&set, spec, name)) {
                self.queue.add(key_of(set.as_ref()));
            }
        }
    }

    /// An orphan is offered to every set that it matches; the first to adopt it wins.
    fn offer(&self, pod: &Pod) {
        if controller_of(&pod.metadata).is_some() || pods::is_deleting(pod) {
            return;
        }
        for set in self.sets.list_namespace(namespace_of(&pod.metadata)) {
            let labels = pod.metadata.labels.as_ref();
            if selected(&set).is_some_and(|(_, selector)| selector.matches(labels)) {
                self.queue.add(key_of(set.as_ref()));
            }
        }
    }

    /// The set that controls an object, if it is still the same one.
    fn owner_of(&self, meta: &ObjectMeta) -> Option<ObjectKey> {
        let controller = controller_of(meta).filter(|owner| owner.kind == "StatefulSet")?;
        let key = ObjectKey::new(namespace_of(meta), &controller.name);
        let set = self.sets.get(&key)?;
        (set.metadata.uid.as_ref() == Some(&controller.uid)).then_some(key)
    }
}

fn namespace_of(meta: &ObjectMeta) -> &str {
    meta.namespace.as_deref().unwrap_or_default()
}
