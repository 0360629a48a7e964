//! What changes of claims, classes and slices of devices mean here.

use super::World;
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
        self.claims.synced().await && self.classes.synced().await && self.slices.synced().await
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
        let (old, new) = match change {
            Change::Resync(_) => return,
            Change::Deleted(claim) => return self.in_devices(|it| it.remove_claim(claim)),
            Change::Added(new) => (None, new),
            Change::Updated { old, new } => (Some(Arc::clone(old)), new),
        };
        self.in_devices(|it| it.set_claim(new));
        let new = Arc::clone(new);
        self.devices_changed(WorldChange::ResourceClaim { old, new });
    }

    fn device_class(&self, change: &Change<DeviceClass>) {
        let class = change.object();
        let name = class.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Resync(_) => {}
            Change::Deleted(_) => self.in_devices(|it| it.remove_class(name)),
            Change::Added(_) | Change::Updated { .. } => {
                self.in_devices(|it| it.set_class(class));
                self.devices_changed(WorldChange::DeviceClass);
            }
        }
    }

    fn resource_slice(&self, change: &Change<ResourceSlice>) {
        let slice = change.object();
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Resync(_) => {}
            Change::Deleted(_) => self.in_devices(|it| it.remove_slice(name)),
            Change::Added(_) | Change::Updated { .. } => {
                self.in_devices(|it| it.set_slice(slice));
                self.devices_changed(WorldChange::ResourceSlice);
            }
        }
    }

    fn in_devices(&self, act: impl FnOnce(&mut Devices)) {
        act(&mut self.views.devices.lock());
    }

    fn devices_changed(&self, change: WorldChange) {
        self.queue.world_changed(change, Instant::now());
    }
}
