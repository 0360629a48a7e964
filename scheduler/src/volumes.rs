//! Claims, volumes and classes as the scheduler sees them, with what it gave away ahead of the API.
//!
//! Invariants: a volume is given to one claim at a time, until the API shows whose it is or the
//! claim gives it back; a claim is for one node at a time. Holds no lock across an await.

use coracle_client::ObjectKey;
use coracle_client::key_of;
use coracle_client::volumes::{SELECTED_NODE, annotation, claim_ref, class_of_volume, volume_name};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSIStorageCapacity, StorageClass};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

mod on_nodes; // Limits and attachments.

pub use on_nodes::{OnNodes, limits};

#[derive(Debug, Default)]
pub struct Volumes {
    claims: HashMap<ObjectKey, Arc<PersistentVolumeClaim>>,
    volumes: HashMap<String, Arc<PersistentVolume>>,
    /// The same by class, each class by name.
    by_class: HashMap<String, BTreeMap<String, Arc<PersistentVolume>>>,
    classes: HashMap<String, Arc<StorageClass>>,
    drivers: HashMap<String, Arc<CSIDriver>>,
    capacities: HashMap<ObjectKey, Arc<CSIStorageCapacity>>,
    pub on_nodes: OnNodes,
    /// Which claim a volume was given to, while the API does not show it.
    given: HashMap<String, ObjectKey>,
    /// Which node a claim's volume is to be made for, while the API does not show it.
    placed: HashMap<ObjectKey, Arc<str>>,
    /// Who waits for changes of a claim.
    waiting: HashMap<ObjectKey, Vec<Arc<Notify>>>,
}

impl Volumes {
    pub fn set_claim(&mut self, claim: &Arc<PersistentVolumeClaim>) {
        let key = key_of(claim.as_ref());
        let is_shown = annotation(&claim.metadata, SELECTED_NODE).is_some();
        if is_shown || !volume_name(claim).is_empty() {
            self.placed.remove(&key);
        }
        self.tell(&key);
        self.claims.insert(key, Arc::clone(claim));
    }

    pub fn remove_claim(&mut self, key: &ObjectKey) {
        self.placed.remove(key);
        self.claims.remove(key);
        self.tell(key);
    }

    pub fn set_volume(&mut self, volume: &Arc<PersistentVolume>) {
        let name = volume.metadata.name.clone().unwrap_or_default();
        self.remove_from_class(&name);
        if claim_ref(volume).is_some() {
            self.given.remove(&name);
        }
        let class = class_of_volume(volume).to_owned();
        let of_class = self.by_class.entry(class).or_default();
        of_class.insert(name.clone(), Arc::clone(volume));
        self.volumes.insert(name, Arc::clone(volume));
    }

    pub fn remove_volume(&mut self, name: &str) {
        self.remove_from_class(name);
        self.volumes.remove(name);
        self.given.remove(name);
    }

    fn remove_from_class(&mut self, name: &str) {
        let Some(old) = self.volumes.get(name) else {
            return;
        };
        let class = class_of_volume(old);
        if let Some(of_class) = self.by_class.get_mut(class) {
            of_class.remove(name);
            if of_class.is_empty() {
                self.by_class.remove(class);
            }
        }
    }

    pub fn set_class(&mut self, class: &Arc<StorageClass>) {
        let name = class.metadata.name.clone().unwrap_or_default();
        self.classes.insert(name, Arc::clone(class));
    }

    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    pub fn set_driver(&mut self, driver: &Arc<CSIDriver>) {
        let name = driver.metadata.name.clone().unwrap_or_default();
        self.drivers.insert(name, Arc::clone(driver));
    }

    pub fn remove_driver(&mut self, name: &str) {
        self.drivers.remove(name);
    }

    pub fn set_capacity(&mut self, capacity: &Arc<CSIStorageCapacity>) {
        self.capacities
            .insert(key_of(capacity.as_ref()), Arc::clone(capacity));
    }

    pub fn remove_capacity(&mut self, key: &ObjectKey) {
        self.capacities.remove(key);
    }

    pub fn claim(&self, key: &ObjectKey) -> Option<&Arc<PersistentVolumeClaim>> {
        self.claims.get(key)
    }

    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        self.volumes.get(name)
    }

    pub fn class(&self, name: &str) -> Option<&Arc<StorageClass>> {
        self.classes.get(name)
    }

    /// The volumes of a class that are not given to another claim, by name.
    pub fn free_for<'a>(
        &'a self,
        claim: &'a ObjectKey,
        class: &str,
    ) -> impl Iterator<Item = &'a Arc<PersistentVolume>> {
        let of_class = self.by_class.get(class).into_iter().flatten();
        let mine = of_class.filter(move |(name, _)| {
            let to = self.given.get(*name);
            to.is_none_or(|to| to == claim)
        });
        mine.map(|(_, volume)| volume)
    }

    /// What is left of a class; `None` where its driver does not say.
    pub fn capacities_of(&self, class: &StorageClass) -> Option<Vec<Arc<CSIStorageCapacity>>> {
        let driver = self.drivers.get(&class.provisioner)?;
        if driver.spec.storage_capacity != Some(true) {
            return None;
        }
        let of_class = self.capacities.values();
        let of_class =
            of_class.filter(|one| Some(&one.storage_class_name) == class.metadata.name.as_ref());
        Some(of_class.cloned().collect())
    }

    /// The node that a claim's volume is made for, or is to be.
    pub fn node_of(&self, key: &ObjectKey) -> Option<&str> {
        let placed = self.placed.get(key).map(AsRef::as_ref);
        let shown = || annotation(&self.claims.get(key)?.metadata, SELECTED_NODE);
        placed.or_else(shown)
    }

    pub fn give(&mut self, volume: &str, claim: &ObjectKey) {
        self.given.insert(volume.to_owned(), claim.clone());
    }

    pub fn take_back(&mut self, volume: &str, claim: &ObjectKey) {
        if self.given.get(volume) == Some(claim) {
            self.given.remove(volume);
        }
    }

    pub fn place(&mut self, claim: &ObjectKey, node: &str) {
        self.placed.insert(claim.clone(), node.into());
    }

    pub fn displace(&mut self, claim: &ObjectKey) {
        self.placed.remove(claim);
    }

    /// Tells of every change of these claims, until `unwatch`.
    pub fn watch(&mut self, claims: &[ObjectKey]) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        for claim in claims {
            let of_claim = self.waiting.entry(claim.clone()).or_default();
            of_claim.push(Arc::clone(&notify));
        }
        notify
    }

    pub fn unwatch(&mut self, claims: &[ObjectKey], notify: &Arc<Notify>) {
        for claim in claims {
            if let Some(of_claim) = self.waiting.get_mut(claim) {
                of_claim.retain(|one| !Arc::ptr_eq(one, notify));
                if of_claim.is_empty() {
                    self.waiting.remove(claim);
                }
            }
        }
    }

    fn tell(&self, claim: &ObjectKey) {
        for notify in self.waiting.get(claim).into_iter().flatten() {
            notify.notify_one();
        }
    }
}
