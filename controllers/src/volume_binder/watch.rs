//! Which claims and volumes to look at when something changed.

use std::sync::Arc;

use coracle_client::informer::Change;
use coracle_client::volumes::{self, BIND_COMPLETED, annotation, claim_ref, volume_name};
use coracle_client::{ObjectKey, key_of, pod_claims};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::Controller;
use super::plan::volume_phase;
use crate::pods;

/// Claims that any volume will do for, by class.
const OPEN_BY_CLASS: &str = "open-by-class";
/// Claims by the volume that they name.
const BY_VOLUME: &str = "by-volume";
/// Volumes by the claim that they are held for.
const BY_HOLDER: &str = "by-holder";

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        self.claims.add_index(OPEN_BY_CLASS, |claim| {
            let is_open = volume_name(claim).is_empty() && !was_bound(claim);
            let class = is_open.then(|| volumes::class_of_claim(claim).to_owned());
            class.into_iter().collect()
        });
        self.claims.add_index(BY_VOLUME, |claim| {
            let name = Some(volume_name(claim)).filter(|name| !name.is_empty());
            name.map(str::to_owned).into_iter().collect()
        });
        self.volumes.add_index(BY_HOLDER, |volume| {
            holder(volume).map(|key| index(&key)).into_iter().collect()
        });
        self.pods
            .add_index(pod_claims::BY_CLAIM, pod_claims::claims_of);
        let told = Arc::clone(self);
        self.claims
            .on_change(move |change| told.claim_changed(change));
        let told = Arc::clone(self);
        self.volumes
            .on_change(move |change| told.volume_changed(change));
        let told = Arc::clone(self);
        self.classes
            .on_change(move |change| told.class_changed(change));
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
    }

    fn claim_changed(&self, change: &Change<PersistentVolumeClaim>) {
        let claim = change.object();
        let key = key_of(claim.as_ref());
        let moved = match change {
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Updated { old, new } => volume_name(old) != volume_name(new),
            Change::Resync(_) => false, // Volumes have their own.
        };
        if moved {
            for volume in self.volumes.by_index(BY_HOLDER, &index(&key)) {
                self.volume_queue.add(key_of(volume.as_ref()));
            }
        }
        if !matches!(change, Change::Deleted(_)) {
            self.claim_queue.add(key);
        }
    }

    fn volume_changed(&self, change: &Change<PersistentVolume>) {
        let volume = change.object();
        let key = key_of(volume.as_ref());
        let named = self.claims.by_index(BY_VOLUME, &key.name);
        let (gone, new) = match change {
            Change::Deleted(_) => (true, true),
            Change::Added(_) => (false, true),
            Change::Updated { old, new } => (false, differs(old, new)),
            Change::Resync(_) => (false, false),
        };
        if new {
            for claim in named {
                self.claim_queue.add(key_of(claim.as_ref()));
            }
        }
        if gone {
            return;
        }
        if let (true, Some(holder)) = (new, holder(volume)) {
            self.claim_queue.add(holder);
        } else if new && volume_phase(volume) == "Available" {
            self.open_claims_of(volumes::class_of_volume(volume));
        }
        self.volume_queue.add(key);
    }

    /// How claims of it are bound, and which class those have that name none.
    fn class_changed(&self, change: &Change<StorageClass>) {
        if matches!(change, Change::Resync(_) | Change::Deleted(_)) {
            return;
        }
        let class = change.object();
        self.open_claims_of(class.metadata.name.as_deref().unwrap_or_default());
        if volumes::default_class(std::slice::from_ref(class)).is_some() {
            self.open_claims_of("");
        }
    }

    /// A claim that waits for a pod says for which.
    fn pod_changed(&self, change: &Change<Pod>) {
        let Change::Added(pod) = change else { return };
        if pods::is_finished(pod) || !pods::node_name(pod).is_empty() {
            return;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for name in pod_claims::names_of(pod) {
            let key = ObjectKey::new(namespace, name);
            let claim = self.claims.get(&key);
            if claim.is_some_and(|claim| !was_bound(&claim)) {
                self.claim_queue.add(key);
            }
        }
    }

    fn open_claims_of(&self, class: &str) {
        for claim in self.claims.by_index(OPEN_BY_CLASS, class) {
            self.claim_queue.add(key_of(claim.as_ref()));
        }
    }
}

fn was_bound(claim: &PersistentVolumeClaim) -> bool {
    annotation(&claim.metadata, BIND_COMPLETED).is_some()
}

fn holder(volume: &PersistentVolume) -> Option<ObjectKey> {
    let held = claim_ref(volume)?;
    Some(ObjectKey::new(
        held.namespace.as_deref()?,
        held.name.as_deref()?,
    ))
}

fn index(claim: &ObjectKey) -> String {
    pod_claims::index(&claim.namespace, &claim.name)
}

/// Whether a change of a volume can matter to claims.
fn differs(old: &PersistentVolume, new: &PersistentVolume) -> bool {
    old.spec != new.spec
        || old.metadata.labels != new.metadata.labels
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || volume_phase(old) != volume_phase(new)
}
