//! What changes of claims, classes and slices of devices mean here.

use super::{World, synced};
use crate::devices::{Devices, allocation};
use crate::framework::WorldChange;
use coracle_client::clock::Instant;
use coracle_client::informer::{Change, Informer, Informers};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::Resource;
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
        let (old, new) = match change {
            Change::Resync(_) => return,
            Change::Deleted(claim) => {
                self.in_devices(|it| it.remove_claim(claim));
                // Mostly it was freed before; but the watch may have missed that.
                if allocation(claim).is_none() {
                    return;
                }
                let mut freed = ResourceClaim::clone(claim);
                freed.status = None;
                (Some(Arc::clone(claim)), Arc::new(freed))
            }
            Change::Added(new) => {
                self.in_devices(|it| it.set_claim(new));
                (None, Arc::clone(new))
            }
            Change::Updated { old, new } => {
                self.in_devices(|it| it.set_claim(new));
                (Some(Arc::clone(old)), Arc::clone(new))
            }
        };
        self.devices_changed(WorldChange::ResourceClaim { old, new });
    }

    fn device_class(&self, change: &Change<DeviceClass>) {
        let act = (
            Devices::set_class as Set<_>,
            Devices::remove_class as Remove,
        );
        self.published(change, act, WorldChange::DeviceClass);
    }

    fn resource_slice(&self, change: &Change<ResourceSlice>) {
        let act = (
            Devices::set_slice as Set<_>,
            Devices::remove_slice as Remove,
        );
        self.published(change, act, WorldChange::ResourceSlice);
    }

    /// What has no namespace; `told` where it came or changed, as the end of it helps nobody.
    fn published<K: Resource>(
        &self,
        change: &Change<K>,
        (set, remove): (Set<K>, Remove),
        told: WorldChange,
    ) {
        match change {
            Change::Resync(_) => {}
            Change::Deleted(object) => {
                let name = object.meta().name.as_deref().unwrap_or_default();
                self.in_devices(|it| remove(it, name));
            }
            Change::Added(new) | Change::Updated { new, .. } => {
                self.in_devices(|it| set(it, new));
                self.devices_changed(told);
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

type Set<K> = fn(&mut Devices, &Arc<K>);
type Remove = fn(&mut Devices, &str);

#[cfg(test)]
mod tests;
