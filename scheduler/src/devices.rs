//! Claims, classes and slices of devices as the scheduler sees them, with what it allocated ahead of
//! the API.
//!
//! Invariants: a claim whose allocation is under way is allocated by nobody else; what the API
//! answered to a write is not forgotten for an older state. Holds no lock across an await.

use coracle_api::pod_spec::resources::is_extended;
use coracle_client::ObjectKey;
use coracle_client::key_of;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

/// Before the name of a class: the extended resource that every class has.
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/";

#[derive(Debug, Default)]
pub struct Devices {
    claims: HashMap<ObjectKey, Arc<ResourceClaim>>,
    classes: HashMap<String, Arc<DeviceClass>>,
    slices: BTreeMap<String, Arc<ResourceSlice>>,
    /// What claims get, by their uid, while the API does not show it.
    under_way: HashMap<String, Arc<AllocationResult>>,
    /// Told when a claim changes.
    changed: Arc<Notify>,
}

impl Devices {
    pub fn set_claim(&mut self, claim: &Arc<ResourceClaim>) {
        let key = key_of(claim.as_ref());
        let known = self.claims.get(&key);
        if known.is_some_and(|known| is_newer(known, claim)) {
            return;
        }
        self.claims.insert(key, Arc::clone(claim));
        self.changed.notify_waiters();
    }

    /// The API answered a write with this, which the watch may be behind, or ahead: a claim that is
    /// gone by then does not come back.
    pub fn written(&mut self, claim: &Arc<ResourceClaim>) {
        let known = self.claims.get(&key_of(claim.as_ref()));
        if known.is_some_and(|known| known.metadata.uid == claim.metadata.uid) {
            self.set_claim(claim);
        }
    }

    /// It needs nothing any more, whatever is under way.
    pub fn remove_claim(&mut self, claim: &ResourceClaim) {
        self.claims.remove(&key_of(claim));
        self.end(claim.metadata.uid.as_deref().unwrap_or_default());
        self.changed.notify_waiters();
    }

    pub fn claim(&self, key: &ObjectKey) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(key)
    }

    pub fn claims(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.values()
    }

    pub fn set_class(&mut self, class: &Arc<DeviceClass>) {
        let name = class.metadata.name.clone().unwrap_or_default();
        self.classes.insert(name, Arc::clone(class));
    }

    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    pub fn class(&self, name: &str) -> Option<&Arc<DeviceClass>> {
        self.classes.get(name)
    }

    /// The class whose devices are given out as this resource: of several that say so the newest,
    /// and of those as new the first by name.
    pub fn class_behind(&self, resource: &str) -> Option<&Arc<DeviceClass>> {
        if let Some(class) = resource.strip_prefix(IMPLICIT) {
            return self.class(class);
        }
        let says_so = |class: &&Arc<DeviceClass>| {
            class.spec.extended_resource_name.as_deref() == Some(resource)
        };
        let created =
            |class: &DeviceClass| class.metadata.creation_timestamp.as_ref().map(|at| at.0);
        let all = self.classes.iter().filter(|(_, class)| says_so(class));
        let newest = all.max_by(|(name, class), (other_name, other)| {
            created(class)
                .cmp(&created(other))
                .then_with(|| other_name.cmp(name))
        });
        newest.map(|(_, class)| class)
    }

    pub fn set_slice(&mut self, slice: &Arc<ResourceSlice>) {
        let name = slice.metadata.name.clone().unwrap_or_default();
        self.slices.insert(name, Arc::clone(slice));
    }

    pub fn remove_slice(&mut self, name: &str) {
        self.slices.remove(name);
    }

    /// By name.
    pub fn slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.slices.values()
    }

    /// The claim gets this, ahead of the API.
    pub fn begin(&mut self, uid: &str, allocation: &Arc<AllocationResult>) {
        self.under_way
            .insert(uid.to_owned(), Arc::clone(allocation));
    }

    /// The API shows it by now, or it was called off.
    pub fn end(&mut self, uid: &str) {
        self.under_way.remove(uid);
    }

    pub fn is_under_way(&self, uid: &str) -> bool {
        self.under_way.contains_key(uid)
    }

    /// What claims have, each claim's once.
    pub fn allocations(&self) -> impl Iterator<Item = &AllocationResult> {
        let shown = self.claims.values().filter(|claim| {
            let uid = claim.metadata.uid.as_deref().unwrap_or_default();
            !self.is_under_way(uid)
        });
        let shown = shown.filter_map(|claim| allocation(claim));
        shown.chain(self.under_way.values().map(|one| &**one))
    }

    /// To wait for changes of claims.
    pub fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }
}

pub fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

/// Whether a class can stand behind the resource.
pub fn may_be_devices(resource: &str) -> bool {
    is_extended(resource) || resource.starts_with(IMPLICIT)
}

/// All names under which the class gives out its devices.
pub fn resources_of(class: &DeviceClass) -> impl Iterator<Item = String> {
    let implicit = class
        .metadata
        .name
        .as_ref()
        .map(|name| format!("{IMPLICIT}{name}"));
    implicit
        .into_iter()
        .chain(class.spec.extended_resource_name.clone())
}

/// Of one object: what is known came after what is shown.
fn is_newer(known: &ResourceClaim, shown: &ResourceClaim) -> bool {
    let version = |claim: &ResourceClaim| {
        let version = claim.metadata.resource_version.as_deref();
        version.and_then(|version| version.parse::<u64>().ok())
    };
    known.metadata.uid == shown.metadata.uid && version(known) > version(shown)
}

#[cfg(test)]
mod tests;
