//! What changes of claims, volumes, classes and capacities mean here.

use super::{World, synced};
use crate::framework::WorldChange;
use crate::volumes::Volumes;
use coracle_client::clock::Instant;
use coracle_client::informer::{Change, Informer, Informers};
use coracle_client::key_of;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment,
};
use std::sync::Arc;

/// The informers of storage.
#[derive(Debug)]
pub struct Storage {
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    classes: Informer<StorageClass>,
    drivers: Informer<CSIDriver>,
    capacities: Informer<CSIStorageCapacity>,
    nodes: Informer<CSINode>,
    attachments: Informer<VolumeAttachment>,
}

impl Storage {
    pub fn new(informers: &Informers) -> Self {
        Self {
            claims: informers.get(),
            volumes: informers.get(),
            classes: informers.get(),
            drivers: informers.get(),
            capacities: informers.get(),
            nodes: informers.get(),
            attachments: informers.get(),
        }
    }

    /// Waits for the first lists; false when the informers were shut down before.
    pub async fn synced(&self) -> bool {
        synced(&self.claims).await
            && synced(&self.volumes).await
            && synced(&self.classes).await
            && synced(&self.drivers).await
            && synced(&self.capacities).await
            && synced(&self.nodes).await
            && synced(&self.attachments).await
    }

    pub fn follow(&self, world: &World) {
        let mine = world.clone();
        self.claims.on_change(move |change| mine.claim(change));
        let mine = world.clone();
        self.volumes.on_change(move |change| mine.volume(change));
        let mine = world.clone();
        self.classes.on_change(move |change| mine.class(change));
        let mine = world.clone();
        self.drivers.on_change(move |change| mine.driver(change));
        let mine = world.clone();
        self.capacities
            .on_change(move |change| mine.capacity(change));
        let mine = world.clone();
        self.nodes.on_change(move |change| mine.csi_node(change));
        let mine = world.clone();
        self.attachments
            .on_change(move |change| mine.attachment(change));
    }
}

impl World {
    fn claim(&self, change: &Change<PersistentVolumeClaim>) {
        let claim = change.object();
        match change {
            Change::Resync(_) => {}
            Change::Deleted(_) => self.in_volumes(|it| it.remove_claim(&key_of(claim.as_ref()))),
            Change::Added(_) | Change::Updated { .. } => {
                self.in_volumes(|it| it.set_claim(claim));
                self.tell(WorldChange::Claim(Arc::clone(claim)));
            }
        }
    }

    fn volume(&self, change: &Change<PersistentVolume>) {
        let volume = change.object();
        match change {
            Change::Resync(_) => {}
            Change::Deleted(_) => {
                let name = volume.metadata.name.as_deref().unwrap_or_default();
                self.in_volumes(|it| it.remove_volume(name));
            }
            Change::Added(_) | Change::Updated { .. } => {
                self.in_volumes(|it| it.set_volume(volume));
                self.tell(WorldChange::Volume(Arc::clone(volume)));
            }
        }
    }

    fn class(&self, change: &Change<StorageClass>) {
        let class = change.object();
        let name = class.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Resync(_) => return,
            Change::Deleted(_) => return self.in_volumes(|it| it.remove_class(name)),
            Change::Added(_) | Change::Updated { .. } => {
                self.in_volumes(|it| it.set_class(class));
            }
        }
        let is_news = match change {
            Change::Updated { old, new } => old.allowed_topologies != new.allowed_topologies,
            _ => true,
        };
        if is_news {
            self.tell(WorldChange::Provisioning);
        }
    }

    fn driver(&self, change: &Change<CSIDriver>) {
        let driver = change.object();
        let name = driver.metadata.name.as_deref().unwrap_or_default();
        match change {
            Change::Resync(_) => return,
            Change::Deleted(_) => self.in_volumes(|it| it.remove_driver(name)),
            Change::Added(_) | Change::Updated { .. } => {
                self.in_volumes(|it| it.set_driver(driver));
            }
        }
        self.tell(WorldChange::Provisioning);
    }

    fn capacity(&self, change: &Change<CSIStorageCapacity>) {
        let capacity = change.object();
        match change {
            Change::Resync(_) => return,
            Change::Deleted(_) => {
                return self.in_volumes(|it| it.remove_capacity(&key_of(capacity.as_ref())));
            }
            Change::Added(_) | Change::Updated { .. } => {
                self.in_volumes(|it| it.set_capacity(capacity));
            }
        }
        let is_news = match change {
            // Most drivers report again and again what they have.
            Change::Updated { old, new } => {
                old.capacity != new.capacity || old.maximum_volume_size != new.maximum_volume_size
            }
            _ => true,
        };
        if is_news {
            self.tell(WorldChange::Provisioning);
        }
    }

    fn csi_node(&self, change: &Change<CSINode>) {
        let (old, new) = match change {
            Change::Resync(_) => return,
            Change::Deleted(node) => {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                return self.in_volumes(|it| it.on_nodes.remove_node(name));
            }
            Change::Added(node) => (None, node),
            Change::Updated { old, new } => (Some(old), new),
        };
        self.in_volumes(|it| it.on_nodes.set_node(new));
        self.tell(WorldChange::CsiNode {
            old: old.cloned(),
            new: Arc::clone(new),
        });
    }

    fn attachment(&self, change: &Change<VolumeAttachment>) {
        match change {
            Change::Resync(_) => {}
            Change::Added(new) | Change::Updated { new, .. } => {
                self.in_volumes(|it| it.on_nodes.set_attachment(new));
            }
            Change::Deleted(old) => {
                self.in_volumes(|it| it.on_nodes.remove_attachment(old));
                self.tell(WorldChange::Detached(Arc::clone(old)));
            }
        }
    }

    fn in_volumes(&self, act: impl FnOnce(&mut Volumes)) {
        act(&mut self.views.volumes.lock());
    }

    fn tell(&self, change: WorldChange) {
        self.queue.world_changed(change, Instant::now());
    }
}
