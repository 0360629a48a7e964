//! Changes of the world that may help pods which found no node.

use super::labels;
use crate::node_facts::NodeFacts;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum WorldChange {
    NodeAdded(Arc<NodeFacts>),
    NodeUpdated {
        old: Arc<NodeFacts>,
        new: Arc<NodeFacts>,
    },
    NodeRemoved(Arc<NodeFacts>),
    /// A pod left its node, or ended there.
    PodGone(Arc<PodInfo>),
    /// A pod came to a node.
    PodPlaced(Arc<PodInfo>),
    /// Labels or requests of a pod on a node changed.
    PodUpdated {
        old: Arc<PodInfo>,
        new: Arc<PodInfo>,
    },
    /// A claim came or changed.
    Claim(Arc<PersistentVolumeClaim>),
    /// A volume came or changed.
    Volume(Arc<PersistentVolume>),
    /// More volumes may be provisioned, or in other places.
    Provisioning,
    /// What a node says of its CSI drivers came or changed.
    CsiNode {
        old: Option<Arc<CSINode>>,
        new: Arc<CSINode>,
    },
    /// A volume is no longer attached to a node.
    Detached(Arc<VolumeAttachment>),
    /// A claim of devices came or changed.
    ResourceClaim {
        old: Option<Arc<ResourceClaim>>,
        new: Arc<ResourceClaim>,
    },
    /// A claim of devices is there no longer; it was as this when it was last seen.
    ResourceClaimGone(Arc<ResourceClaim>),
    /// A class of devices came or changed.
    DeviceClass {
        old: Option<Arc<DeviceClass>>,
        new: Arc<DeviceClass>,
    },
    /// What there is of devices came or changed.
    ResourceSlice,
    /// The waiting pod itself was changed.
    Itself,
}

impl WorldChange {
    /// As metrics have it, by upstream's names. A change that is several of upstream's is the
    /// first of them; whether an object of storage came or changed is not told apart.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NodeAdded(_) => "NodeAdd",
            Self::NodeUpdated { old, new } => labels::node_updated(old, new),
            Self::NodeRemoved(_) => "NodeDelete",
            Self::PodGone(_) => "AssignedPodDelete",
            Self::PodPlaced(_) => "AssignedPodAdd",
            Self::PodUpdated { old, new } => {
                if old.labels() == new.labels() {
                    "AssignedPodUpdatePodScaleDown"
                } else {
                    "AssignedPodUpdatePodLabel"
                }
            }
            Self::Claim(_) => "PersistentVolumeClaimUpdate",
            Self::Volume(_) => "PersistentVolumeUpdate",
            Self::Provisioning => "storage.k8s.io/StorageClassUpdate",
            Self::CsiNode { old: None, .. } => "storage.k8s.io/CSINodeAdd",
            Self::CsiNode { old: Some(_), .. } => "storage.k8s.io/CSINodeUpdate",
            Self::Detached(_) => "storage.k8s.io/VolumeAttachmentDelete",
            Self::ResourceClaim { old: None, .. } => "resource.k8s.io/ResourceClaimAdd",
            Self::ResourceClaim { .. } => "resource.k8s.io/ResourceClaimUpdate",
            Self::ResourceClaimGone(_) => "resource.k8s.io/ResourceClaimDelete",
            Self::DeviceClass { old: None, .. } => "resource.k8s.io/DeviceClassAdd",
            Self::DeviceClass { .. } => "resource.k8s.io/DeviceClassUpdate",
            Self::ResourceSlice => "resource.k8s.io/ResourceSliceUpdate",
            Self::Itself => "UnschedulablePodUpdate",
        }
    }

    /// The node that came or changed.
    pub fn node(&self) -> Option<&NodeFacts> {
        match self {
            Self::NodeAdded(node) | Self::NodeUpdated { new: node, .. } => Some(node),
            _ => None,
        }
    }

    /// True for a new node, or where one is not what it was.
    pub fn changes(&self, differ: impl Fn(&NodeFacts, &NodeFacts) -> bool) -> bool {
        match self {
            Self::NodeAdded(_) => true,
            Self::NodeUpdated { old, new } => differ(old, new),
            _ => false,
        }
    }
}
