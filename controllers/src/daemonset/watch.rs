//! Which sets to look at when something changed, and which expectations that settles.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::placement::{Placement, Requirements};
use super::{
    Change, Controller, ControllerRevision, DaemonSet, Node, ObjectKey, Pod, controller_of, key_of,
};
use crate::labels::Selector;
use crate::{ownership, pods};

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.sets.on_change(move |change| told.set_changed(change));
        let told = Arc::clone(self);
        self.revisions
            .on_change(move |change| told.revision_changed(change));
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
        let told = Arc::clone(self);
        self.nodes
            .on_change(move |change| told.node_changed(change));
    }

    fn set_changed(&self, change: &Change<DaemonSet>) {
        let key = key_of(change.object().as_ref());
        if matches!(change, Change::Deleted(_)) {
            // Its successor of the same name starts with a clean slate.
            self.expectations.forget(&key);
        }
        self.queue.add(key);
    }

    /// The sets for which the node is another than before: they gain or lose a pod there, or
    /// count it differently.
    fn node_changed(&self, change: &Change<Node>) {
        let (before, after) = match change {
            Change::Added(node) => (None, Some(node)),
            Change::Updated { old, new } => (Some(old), Some(new)),
            Change::Deleted(node) => (Some(node), None),
            Change::Resync(_) => return, // The sets have their own.
        };
        if before.is_some_and(|old| after.is_some_and(|new| is_same_place(old, new))) {
            return;
        }
        for set in self.sets.list() {
            let Some(spec) = &set.spec else {
                continue;
            };
            let requirements = Requirements::of(&spec.template);
            let placement = |node: Option<&Arc<Node>>| {
                node.map_or(Placement::default(), |node| requirements.on(node))
            };
            if placement(before) != placement(after) {
                self.queue.add(key_of(set.as_ref()));
            }
        }
    }

    fn revision_changed(&self, change: &Change<ControllerRevision>) {
        match change {
            Change::Added(revision) if controller_of(&revision.metadata).is_none() => {
                self.offer(&revision.metadata);
            }
            // Made by this loop, or seen at start with its set.
            Change::Added(_) | Change::Resync(_) => {}
            Change::Updated { old, new } => self.moved(&old.metadata, &new.metadata),
            Change::Deleted(revision) => self.enqueue_owner(&revision.metadata),
        }
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        match change {
            Change::Added(pod) if pods::is_deleting(pod) => self.pod_going(pod),
            Change::Added(pod) => match self.owner_of(&pod.metadata) {
                Some(key) => {
                    self.expectations.creation_observed(&key);
                    self.queue.add(key);
                }
                None => self.offer(&pod.metadata),
            },
            Change::Updated { new, .. } if pods::is_deleting(new) => {
                // Seen once more when it is gone; a deletion is counted by uid, so once.
                self.pod_going(new);
            }
            Change::Updated { old, new } => self.moved(&old.metadata, &new.metadata),
            Change::Deleted(pod) => self.pod_going(pod),
            Change::Resync(_) => {} // The sets have their own.
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

    fn moved(&self, old: &ObjectMeta, new: &ObjectMeta) {
        let changed_hands = controller_of(old) != controller_of(new);
        if changed_hands {
            self.enqueue_owner(old);
        }
        if controller_of(new).is_some() {
            self.enqueue_owner(new);
        } else if changed_hands || old.labels != new.labels {
            self.offer(new);
        }
    }

    /// An orphan is offered to every set that it matches; the first to adopt it wins.
    fn offer(&self, orphan: &ObjectMeta) {
        if controller_of(orphan).is_some() {
            return;
        }
        let namespace = orphan.namespace.as_deref().unwrap_or_default();
        for set in self.sets.list_namespace(namespace) {
            if set
                .spec
                .as_ref()
                .and_then(|spec| Selector::from_label_selector(&spec.selector))
                .is_some_and(|selector| selector.matches(orphan.labels.as_ref()))
            {
                self.queue.add(key_of(set.as_ref()));
            }
        }
    }

    fn enqueue_owner(&self, meta: &ObjectMeta) {
        if let Some(key) = self.owner_of(meta) {
            self.queue.add(key);
        }
    }

    fn owner_of(&self, meta: &ObjectMeta) -> Option<ObjectKey> {
        let set = ownership::owner_of(&self.sets, meta)?;
        Some(key_of(set.as_ref()))
    }
}

/// Heartbeats change nothing that decides where pods run.
fn is_same_place(old: &Node, new: &Node) -> bool {
    fn labels(node: &Node) -> Option<&BTreeMap<String, String>> {
        let labels = node.metadata.labels.as_ref();
        labels.filter(|labels| !labels.is_empty())
    }
    fn taints(node: &Node) -> &[Taint] {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        taints.unwrap_or_default()
    }
    labels(old) == labels(new) && taints(old) == taints(new)
}
