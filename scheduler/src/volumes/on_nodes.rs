//! How many volumes of a driver each node takes, and which are attached to it.

use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct OnNodes {
    /// Limits by node: driver, and how many volumes. Nodes without limits are not kept.
    limits: HashMap<String, Vec<(Arc<str>, i64)>>,
    /// By node, then by name of the attachment.
    attachments: HashMap<String, BTreeMap<String, Attached>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub driver: Arc<str>,
    pub volume: String,
}

/// What a CSINode says of its drivers that have a limit.
pub fn limits(node: &CSINode) -> impl Iterator<Item = (&str, i64)> {
    node.spec.drivers.iter().filter_map(|driver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((driver.name.as_str(), i64::from(count)))
    })
}

impl OnNodes {
    pub fn set_node(&mut self, node: &CSINode) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let limits: Vec<_> = limits(node)
            .map(|(driver, count)| (driver.into(), count))
            .collect();
        if limits.is_empty() {
            self.limits.remove(&name);
        } else {
            self.limits.insert(name, limits);
        }
    }

    pub fn remove_node(&mut self, name: &str) {
        self.limits.remove(name);
    }

    pub fn set_attachment(&mut self, attachment: &VolumeAttachment) {
        let name = attachment.metadata.name.clone().unwrap_or_default();
        let spec = &attachment.spec;
        // One of a volume without a PersistentVolume is not counted, as upstream does not.
        if let Some(volume) = &spec.source.persistent_volume_name
            && !spec.attacher.is_empty()
        {
            let attached = Attached {
                driver: spec.attacher.as_str().into(),
                volume: volume.clone(),
            };
            let on_node = self.attachments.entry(spec.node_name.clone()).or_default();
            on_node.insert(name, attached);
        }
    }

    pub fn remove_attachment(&mut self, attachment: &VolumeAttachment) {
        let name = attachment.metadata.name.as_deref().unwrap_or_default();
        let node = &attachment.spec.node_name;
        if let Some(on_node) = self.attachments.get_mut(node) {
            on_node.remove(name);
            if on_node.is_empty() {
                self.attachments.remove(node);
            }
        }
    }

    /// Whether any node limits this driver.
    pub fn is_limited(&self, driver: &str) -> bool {
        let mut all = self.limits.values().flatten();
        all.any(|(limited, _)| **limited == *driver)
    }

    pub fn limits(&self, node: &str) -> &[(Arc<str>, i64)] {
        self.limits.get(node).map(Vec::as_slice).unwrap_or(&[])
    }

    pub fn attached(&self, node: &str) -> impl Iterator<Item = &Attached> {
        self.attachments
            .get(node)
            .into_iter()
            .flat_map(BTreeMap::values)
    }
}
