//! Devices behind extended resources (KEP-5004): a pod that asks for `example.com/gpu` gets, on a node
//! without a device plugin for it, devices of the class that stands behind the name. Pure.
//!
//! The scheduler makes one claim for all of them, as late as it can: until PreBind it is in memory
//! alone, and another one for each node, as nodes differ in what they have a device plugin for.

use super::requests::{self, Wanted};
use crate::devices::{self, Devices};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::{ContainerExtendedResourceRequest, Pod, PodSpec};
use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceClass, DeviceRequest, ResourceClaim, ResourceClaimSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Says of a claim that a scheduler made it for the extended resources of its owner.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// Upstream's name of a claim that is not in the API: no claim there can be called that.
const NAME_IN_MEMORY: &str = "<extended-resources>";

/// What a pod asks for of which nodes may have devices.
#[derive(Debug)]
pub enum Extended {
    /// A claim of an attempt that failed. It has to go first: whether it still does is not looked
    /// into.
    Stale(Arc<ResourceClaim>),
    Wanted(Template),
}

#[derive(Debug)]
pub struct Template {
    pod: Arc<Pod>,
    /// Of the claim, as long as it is in memory.
    pub uid: String,
    /// By name.
    wanted: Vec<(Arc<str>, Option<Arc<DeviceClass>>)>,
}

/// The claim that is made if the pod goes to one node.
#[derive(Clone, Debug)]
pub struct Special {
    pub claim: Arc<ResourceClaim>,
    /// Which container has which of its requests.
    pub mappings: Vec<ContainerExtendedResourceRequest>,
}

/// Whether the pod asks for something that a class stands behind.
pub fn are_asked_for(pod: &PodInfo, devices: &Devices) -> bool {
    let mut scalars = pod.requests.scalars.iter();
    scalars.any(|(name, amount)| *amount > 0 && devices.class_behind(name).is_some())
}

/// Whether the claim was made for the extended resources of the pod.
pub fn is_for(claim: &ResourceClaim, pod: &PodInfo) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    let mark = annotations.and_then(|all| all.get(ANNOTATION));
    let mut owners = claim.metadata.owner_references.iter().flatten();
    mark.is_some_and(|mark| mark == "true")
        && claim.metadata.namespace.as_ref() == Some(&pod.key.namespace)
        && owners.any(|one| one.controller == Some(true) && one.uid == pod.uid)
}

impl Extended {
    /// `uid` makes one for the claim while the API has given it none.
    pub fn of(pod: &PodInfo, devices: &Devices, uid: impl Fn() -> String) -> Option<Self> {
        let waiting = pod.waiting.as_ref()?;
        if !are_asked_for(pod, devices) {
            return None;
        }
        if let Some(claim) = devices.claims().find(|claim| is_for(claim, pod)) {
            return Some(Self::Stale(Arc::clone(claim)));
        }
        let asked = pod.requests.scalars.iter();
        let asked = asked.filter(|(name, amount)| *amount > 0 && devices::may_be_devices(name));
        let wanted = asked.map(|(name, _)| {
            let class = devices.class_behind(name).cloned();
            (Arc::clone(name), class)
        });
        Some(Self::Wanted(Template {
            pod: Arc::clone(waiting),
            uid: uid(),
            wanted: wanted.collect(),
        }))
    }

    /// In upstream's words why the node will not do.
    pub fn on_node(&self, node: &NodeInfo) -> Result<Option<Special>, &'static str> {
        match self {
            Self::Stale(_) => Err("cannot schedule extended resource claim"),
            Self::Wanted(template) => template.on_node(node),
        }
    }

    pub fn classes(&self) -> impl Iterator<Item = &Arc<DeviceClass>> {
        let wanted = match self {
            Self::Stale(_) => &[][..],
            Self::Wanted(template) => &template.wanted,
        };
        wanted.iter().filter_map(|(_, class)| class.as_ref())
    }
}

impl Template {
    fn on_node(&self, node: &NodeInfo) -> Result<Option<Special>, &'static str> {
        let mut as_devices = Vec::new();
        for (resource, class) in &self.wanted {
            match class {
                Some(class) if node.facts.allocatable.scalar(resource) == 0 => {
                    let class = class.metadata.name.as_deref().unwrap_or_default();
                    as_devices.push(Wanted { resource, class });
                }
                None if !node.facts.allocatable.has_scalar(resource) => {
                    return Err("cannot fit resource");
                }
                _ => {}
            }
        }
        let none = PodSpec::default();
        let spec = self.pod.spec.as_ref().unwrap_or(&none);
        let (requests, mappings) = requests::of(spec, &as_devices);
        // Where the node has a plugin for all, upstream makes a claim without requests for a pod
        // that has others as well, and the pod never comes to be bound.
        Ok((!requests.is_empty()).then(|| Special {
            claim: Arc::new(self.claim(requests)),
            mappings,
        }))
    }

    fn claim(&self, requests: Vec<DeviceRequest>) -> ResourceClaim {
        let of_pod = &self.pod.metadata;
        let pod = of_pod.name.clone().unwrap_or_default();
        let metadata = ObjectMeta {
            name: Some(NAME_IN_MEMORY.to_owned()),
            generate_name: Some(format!("{pod}-extended-resources-")),
            namespace: of_pod.namespace.clone(),
            uid: Some(self.uid.clone()),
            annotations: Some(BTreeMap::from([(ANNOTATION.to_owned(), "true".to_owned())])),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: pod,
                uid: of_pod.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        };
        let devices = DeviceClaim {
            requests: Some(requests),
            ..DeviceClaim::default()
        };
        ResourceClaim {
            metadata,
            spec: ResourceClaimSpec {
                devices: Some(devices),
            },
            status: None,
        }
    }
}

impl Special {
    /// As it is sent to the API, which names it.
    pub fn to_create(&self) -> ResourceClaim {
        let mut claim = ResourceClaim::clone(&self.claim);
        claim.metadata.name = None;
        claim.metadata.uid = None;
        claim
    }
}
