//! What changes of claims, classes and slices of devices mean here.

use super::{World, synced};
use crate::devices::Devices;
use crate::framework::WorldChange;
use coracle_client::clock::Instant;
use coracle_client::informer::{Change, Informer, Informers};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use std::sync::Arc;

/// The informers of devices.
#[derive(Debug)]
pub struct DeviceKinds {
    claims: Informer<ResourceClaim>,
    classes: Informer<DeviceClass>,
    slices: Informer<ResourceSlice>,
}

impl DeviceKinds {
    pub fn new(informers: &Informers) -> Self {
        Self {
            claims: informers.get(),
            classes: informers.get(),
            slices: informers.get(),
        }
    }

    /// Waits for the first lists; false when the informers were shut down before.
    pub async fn synced(&self) -> bool {
        synced(&self.claims).await && synced(&self.classes).await && synced(&self.slices).await
    }

    pub fn follow(&self, world: &World) {
        let mine = world.clone();
        self.classes
            .on_change(move |change| mine.device_class(change));
        let mine = world.clone();
        self.slices
            .on_change(move |change| mine.resource_slice(change));
        let mine = world.clone();
        self.claims
            .on_change(move |change| mine.resource_claim(change));
    }
}

impl World {
    fn resource_claim(&self, change: &Change<ResourceClaim>) {
        if let Change::Deleted(claim) = change {
            self.in_devices(|it| it.remove_claim(claim));
            return self.devices_changed(WorldChange::ResourceClaimGone(Arc::clone(claim)));
        }
        if let Some((old, new)) = came(change) {
            self.in_devices(|it| it.set_claim(&new));
            self.devices_changed(WorldChange::ResourceClaim { old, new });
        }
    }

    fn device_class(&self, change: &Change<DeviceClass>) {
        // The end of one helps nobody.
        if let Change::Deleted(class) = change {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            return self.in_devices(|it| it.remove_class(name));
        }
        if let Some((old, new)) = came(change) {
            self.in_devices(|it| it.set_class(&new));
            self.devices_changed(WorldChange::DeviceClass { old, new });
        }
    }

    fn resource_slice(&self, change: &Change<ResourceSlice>) {
        if let Change::Deleted(slice) = change {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            return self.in_devices(|it| it.remove_slice(name));
        }
        if let Some((_, new)) = came(change) {
            self.in_devices(|it| it.set_slice(&new));
            self.devices_changed(WorldChange::ResourceSlice);
        }
    }

    fn in_devices(&self, act: impl FnOnce(&mut Devices)) {
        act(&mut self.views.devices.lock());
    }

    fn devices_changed(&self, change: WorldChange) {
        self.queue.world_changed(change, Instant::now());
    }
}

/// What it was before, and is now.
fn came<K>(change: &Change<K>) -> Option<(Option<Arc<K>>, Arc<K>)> {
    match change {
        Change::Added(new) => Some((None, Arc::clone(new))),
        Change::Updated { old, new } => Some((Some(Arc::clone(old)), Arc::clone(new))),
        Change::Deleted(_) | Change::Resync(_) => None,
    }
}

#[cfg(test)]
mod tests;
