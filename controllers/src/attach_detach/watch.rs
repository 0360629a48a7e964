//! Which nodes to look at when something changed.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::{ObjectKey, key_of, pod_claims};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;

use super::Controller;
use super::plan::Attachable;
use crate::{node_pods, nodes, pods};

/// Attachments by their node.
pub(super) const BY_NODE: &str = "by-node";
/// Attachments by their volume.
pub(super) const BY_VOLUME: &str = "by-volume";

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        node_pods::index(&self.pods);
        self.pods
            .add_index(pod_claims::BY_CLAIM, pod_claims::claims_of);
        self.attachments
            .add_index(BY_NODE, |one| vec![one.spec.node_name.clone()]);
        self.attachments.add_index(BY_VOLUME, |one| {
            let volume = one.spec.source.persistent_volume_name.clone();
            volume.into_iter().collect()
        });
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
        let told = Arc::clone(self);
        self.claims
            .on_change(move |change| told.claim_changed(change));
        let told = Arc::clone(self);
        self.volumes
            .on_change(move |change| told.volume_changed(change));
        let told = Arc::clone(self);
        self.nodes
            .on_change(move |change| told.node_changed(change));
        let told = Arc::clone(self);
        self.attachments
            .on_change(move |change| told.attachment_changed(change));
        let told = Arc::clone(self);
        self.drivers.on_change(move |change| {
            if !matches!(change, Change::Resync(_)) {
                for node in told.nodes.list() {
                    told.queue.add(key_of(node.as_ref()));
                }
            }
        });
    }

    fn add(&self, node: &str) {
        if !node.is_empty() {
            self.queue.add(ObjectKey::new("", node));
        }
    }

    /// Pods without claims concern nobody here.
    fn pod_changed(&self, change: &Change<Pod>) {
        let pod = change.object();
        let is_news = match change {
            Change::Updated { old, new } => {
                pods::node_name(old) != pods::node_name(new)
                    || pods::is_finished(old) != pods::is_finished(new)
            }
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Resync(_) => false,
        };
        if is_news && !pod_claims::names_of(pod).is_empty() {
            self.add(pods::node_name(pod));
        }
    }

    fn claim_changed(&self, change: &Change<PersistentVolumeClaim>) {
        if matches!(change, Change::Resync(_)) {
            return;
        }
        let key = key_of(change.object().as_ref());
        let index = pod_claims::index(&key.namespace, &key.name);
        for pod in self.pods.by_index(pod_claims::BY_CLAIM, &index) {
            self.add(pods::node_name(&pod));
        }
    }

    fn volume_changed(&self, change: &Change<PersistentVolume>) {
        if !matches!(change, Change::Resync(_)) {
            self.users_changed(change.object());
        }
    }

    fn users_changed(&self, volume: &Arc<PersistentVolume>) {
        let Some(volume) = Attachable::of(volume) else {
            return;
        };
        for pod in self.users_of(&volume) {
            self.add(pods::node_name(&pod));
        }
    }

    fn node_changed(&self, change: &Change<Node>) {
        let node = change.object();
        let is_news = match change {
            Change::Updated { old, new } => {
                let lists = |node: &Node| {
                    let status = node.status.clone().unwrap_or_default();
                    (status.volumes_in_use, status.volumes_attached)
                };
                let taints = |node: &Node| node.spec.clone().and_then(|spec| spec.taints);
                lists(old) != lists(new)
                    || taints(old) != taints(new)
                    || nodes::is_ready(old) != nodes::is_ready(new)
            }
            Change::Added(_) | Change::Deleted(_) | Change::Resync(_) => true,
        };
        if is_news {
            self.add(node.metadata.name.as_deref().unwrap_or_default());
        }
    }

    /// Other nodes may wait for a volume that is detached.
    fn attachment_changed(&self, change: &Change<VolumeAttachment>) {
        let attachment = change.object();
        // One that is gone may have a namesake already that was begun since.
        if matches!(change, Change::Added(_) | Change::Updated { .. }) {
            self.begun.lock().end(attachment);
        }
        self.add(&attachment.spec.node_name);
        if let (Change::Deleted(_), Some(name)) = (
            change,
            attachment.spec.source.persistent_volume_name.as_deref(),
        ) && let Some(volume) = self.volumes.get(&ObjectKey::new("", name))
        {
            self.users_changed(&volume);
        }
    }
}
