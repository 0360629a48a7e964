//! A volume that a driver is asked for, and the questions. Pure.

use super::driver::Lifecycle;
use super::messages::*;
use super::node::{Capabilities, access_mode};
use super::places;
use crate::volumes::OfDriver;
use crate::volumes::claims;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod, SecretReference, Volume};
use std::collections::BTreeMap;

type Map = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The PersistentVolume's name, or the pod's own for one that lives with the pod.
    pub name: String,
    pub driver: String,
    pub handle: String,
    pub lifecycle: Lifecycle,
    pub is_block: bool,
    pub read_only: bool,
    pub fs_type: String,
    pub attributes: Map,
    /// None for a volume that lives with its pod.
    pub access_modes: Option<Vec<String>>,
    pub mount_options: Vec<String>,
    pub stage_secret: Option<SecretReference>,
    pub publish_secret: Option<SecretReference>,
    pub expand_secret: Option<SecretReference>,
}

impl Wanted {
    /// None for a volume of another kind.
    pub fn of_volume(volume: &PersistentVolume, read_only: bool) -> Option<Self> {
        let spec = volume.spec.as_ref()?;
        let source = spec.csi.as_ref()?;
        Some(Self {
            name: volume.metadata.name.clone().unwrap_or_default(),
            driver: source.driver.clone(),
            handle: source.volume_handle.clone(),
            lifecycle: Lifecycle::Persistent,
            is_block: claims::is_block(volume),
            read_only,
            fs_type: source.fs_type.clone().unwrap_or_default(),
            attributes: source.volume_attributes.clone().unwrap_or_default(),
            access_modes: Some(spec.access_modes.clone().unwrap_or_default()),
            mount_options: spec.mount_options.clone().unwrap_or_default(),
            stage_secret: source.node_stage_secret_ref.clone(),
            publish_secret: source.node_publish_secret_ref.clone(),
            expand_secret: source.node_expand_secret_ref.clone(),
        })
    }

    /// None for a volume of another kind.
    pub fn of_pod(pod: &Pod, volume: &Volume) -> Option<Self> {
        let source = volume.csi.as_ref()?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let secret = source.node_publish_secret_ref.as_ref();
        Some(Self {
            name: volume.name.clone(),
            driver: source.driver.clone(),
            handle: places::ephemeral_handle(uid, &volume.name),
            lifecycle: Lifecycle::Ephemeral,
            is_block: false,
            read_only: source.read_only.unwrap_or(false),
            fs_type: source.fs_type.clone().unwrap_or_default(),
            attributes: source.volume_attributes.clone().unwrap_or_default(),
            access_modes: None,
            mount_options: Vec::new(),
            stage_secret: None,
            publish_secret: secret.map(|secret| SecretReference {
                name: Some(secret.name.clone()),
                namespace: pod.metadata.namespace.clone(),
            }),
            expand_secret: None,
        })
    }

    pub fn of_driver(&self, is_attached: bool) -> OfDriver {
        OfDriver {
            driver: self.driver.clone(),
            handle: self.handle.clone(),
            is_ephemeral: self.lifecycle == Lifecycle::Ephemeral,
            is_attached,
        }
    }

    fn capability(&self, has: &Capabilities, group: Option<u32>) -> VolumeCapability {
        let modes = self.access_modes.as_ref();
        let mode = modes.and_then(|modes| modes.first());
        let mode = mode.map_or("ReadWriteOnce", String::as_str);
        let mut capability = VolumeCapability {
            access_mode: Some(AccessMode {
                mode: access_mode(mode, has),
            }),
            ..VolumeCapability::default()
        };
        if self.is_block {
            capability.block = Some(Nothing {});
        } else {
            let group = group.filter(|_| has.has(VOLUME_MOUNT_GROUP));
            capability.mount = Some(MountVolume {
                fs_type: self.fs_type.clone(),
                mount_flags: self.mount_options.clone(),
                volume_mount_group: group.map_or_else(String::new, |group| group.to_string()),
            });
        }
        capability
    }

    pub fn stage_question(
        &self,
        has: &Capabilities,
        place: String,
        group: Option<u32>,
        publish_context: Map,
        secrets: Map,
    ) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: self.handle.clone(),
            publish_context,
            staging_target_path: place,
            volume_capability: Some(self.capability(has, group)),
            secrets,
            volume_context: self.attributes.clone(),
        }
    }

    /// `more` is told to the driver beside the volume's own attributes.
    pub fn publish_question(
        &self,
        has: &Capabilities,
        [staged, target]: [String; 2],
        group: Option<u32>,
        publish_context: Map,
        secrets: Map,
        more: Map,
    ) -> NodePublishVolumeRequest {
        let mut volume_context = self.attributes.clone();
        volume_context.extend(more);
        NodePublishVolumeRequest {
            volume_id: self.handle.clone(),
            publish_context,
            staging_target_path: staged,
            target_path: target,
            volume_capability: Some(self.capability(has, group)),
            readonly: self.read_only,
            secrets,
            volume_context,
        }
    }

    pub fn expand_question(
        &self,
        has: &Capabilities,
        [staged, target]: [String; 2],
        bytes: i64,
        secrets: Map,
    ) -> NodeExpandVolumeRequest {
        NodeExpandVolumeRequest {
            volume_id: self.handle.clone(),
            volume_path: target,
            capacity_range: Some(CapacityRange {
                required_bytes: bytes,
            }),
            staging_target_path: staged,
            volume_capability: Some(self.capability(has, None)),
            secrets,
        }
    }
}

#[cfg(test)]
mod tests;
