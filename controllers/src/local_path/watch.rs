//! Which claims and volumes to look at when something changed.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::volumes::{LOCAL_PATH, PROVISIONER, annotation, class_of_claim};
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};

use super::{Controller, plan};
use crate::nodes;

/// Volumes that go, by their node.
const GOING_BY_NODE: &str = "going-by-node";

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        self.volumes.add_index(GOING_BY_NODE, |volume| {
            let is_going = plan::is_own(volume) && volume.metadata.deletion_timestamp.is_some();
            let node = is_going.then(|| plan::node_of(volume).to_owned());
            node.into_iter().collect()
        });
        let told = Arc::clone(self);
        self.claims.on_change(move |change| {
            if is_asked(change.object()) && !matches!(change, Change::Deleted(_)) {
                told.claim_queue.add(key_of(change.object().as_ref()));
            }
        });
        // A claim may be seen before its class is.
        let told = Arc::clone(self);
        self.classes.on_change(move |change| {
            if matches!(change, Change::Added(_)) {
                let name = change.object().metadata.name.as_deref().unwrap_or_default();
                told.class_came(name);
            }
        });
        let told = Arc::clone(self);
        self.volumes.on_change(move |change| {
            let volume: &Arc<PersistentVolume> = change.object();
            if !matches!(change, Change::Deleted(_)) && plan::end(volume) != plan::End::Nothing {
                told.volume_queue.add(key_of(volume.as_ref()));
            }
        });
        let told = Arc::clone(self);
        self.nodes
            .on_change(move |change| told.node_changed(change));
    }

    fn class_came(&self, name: &str) {
        let claims = self.claims.list();
        let of_class = |claim: &&Arc<PersistentVolumeClaim>| class_of_claim(claim) == name;
        for claim in claims
            .iter()
            .filter(|claim| is_asked(claim))
            .filter(of_class)
        {
            self.claim_queue.add(key_of(claim.as_ref()));
        }
    }

    /// One that is back, or gone for good, is what volumes wait for.
    fn node_changed(&self, change: &Change<Node>) {
        let node = change.object();
        let is_news = match change {
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Updated { old, new } => {
                nodes::is_ready(old) != nodes::is_ready(new)
                    || plan::directory(old) != plan::directory(new)
            }
            Change::Resync(_) => false,
        };
        if !is_news {
            return;
        }
        let name = node.metadata.name.as_deref().unwrap_or_default();
        for volume in self.volumes.by_index(GOING_BY_NODE, name) {
            self.volume_queue.add(key_of(volume.as_ref()));
        }
        if plan::directory(node).is_some() && !matches!(change, Change::Deleted(_)) {
            self.class_queue.add(ObjectKey::new("", LOCAL_PATH));
        }
    }
}

fn is_asked(claim: &PersistentVolumeClaim) -> bool {
    annotation(&claim.metadata, PROVISIONER) == Some(LOCAL_PATH)
}
