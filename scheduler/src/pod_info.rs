//! What the scheduler needs of a pod, computed once when the pod is first seen.

use crate::resources::{self, Resources};
use crate::selector::Labels;
use coracle_api::object::ObjectKey;
use coracle_client::pod_claims;
use k8s_openapi::api::core::v1::{Affinity, Pod, PodSpec, Toleration};
use std::sync::Arc;

mod disks; // Disks without a claim.
mod spread; // Topology spread constraints.
mod terms; // Terms of affinity to other pods.

pub use disks::Disk;
pub use spread::SpreadConstraint;
pub use terms::{AffinityTerm, PodTerms, WeightedTerm};

pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// A host port that a container takes on its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// `0.0.0.0` stands for all addresses.
    pub address: String,
    pub protocol: String,
    pub port: i32,
}

impl HostPort {
    /// Two host ports cannot be on one node when port and protocol are the same and one of them
    /// is on all addresses or both are on the same.
    pub fn conflicts(&self, other: &Self) -> bool {
        const ALL: &str = "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == ALL || other.address == ALL || self.address == other.address)
    }
}

#[derive(Debug)]
pub struct PodInfo {
    pub pod: Arc<Pod>,
    pub key: ObjectKey,
    pub uid: String,
    pub priority: i32,
    pub requests: Resources,
    pub scored: Resources,
    pub host_ports: Vec<HostPort>,
    /// Images in the form in which nodes report them, with a tag.
    pub images: Vec<String>,
    pub container_count: i64,
    pub claims: Vec<ClaimUse>,
    /// Disks that not everybody may use at once, named without a claim.
    pub disks: Vec<Disk>,
    pub spread: Vec<SpreadConstraint>,
    /// Of affinity to other pods, and of the opposite. Most pods have none.
    pub terms: Option<Box<PodTerms>>,
}

/// A claim that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    pub name: String,
    /// Made for the pod.
    pub is_ephemeral: bool,
}

impl PodInfo {
    pub fn new(pod: Arc<Pod>) -> Self {
        let none = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&none);
        let images = images(spec);
        let containers = spec.containers.len() + spec.init_containers.iter().flatten().count();
        Self {
            key: coracle_client::key_of(pod.as_ref()),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            priority: spec.priority.unwrap_or(0),
            requests: resources::pod_requests(spec),
            scored: resources::pod_scored_requests(spec),
            host_ports: host_ports(spec),
            images,
            claims: claims(&pod),
            disks: disks::of(&pod),
            spread: spread::of(spec, pod.metadata.labels.as_ref()),
            terms: terms::of(spec, pod.metadata.namespace.as_deref().unwrap_or_default()),
            container_count: i64::try_from(containers).unwrap_or(i64::MAX),
            pod,
        }
    }

    fn spec(&self) -> Option<&PodSpec> {
        self.pod.spec.as_ref()
    }

    pub fn node_name(&self) -> &str {
        self.spec()
            .and_then(|spec| spec.node_name.as_deref())
            .unwrap_or("")
    }

    pub fn labels(&self) -> Option<&Labels> {
        self.pod.metadata.labels.as_ref()
    }

    /// Terms that another pod must meet, of affinity and of anti-affinity.
    pub fn required_terms(&self) -> [&[AffinityTerm]; 2] {
        let terms = self.terms.as_deref();
        terms.map_or([&[], &[]], |terms| [&terms.affinity, &terms.anti_affinity])
    }

    pub fn tolerations(&self) -> &[Toleration] {
        self.spec()
            .and_then(|spec| spec.tolerations.as_deref())
            .unwrap_or(&[])
    }

    pub fn affinity(&self) -> Option<&Affinity> {
        self.spec()?.affinity.as_ref()
    }

    /// The pair of `spec.nodeSelector`.
    pub fn node_selector(&self) -> impl Iterator<Item = (&String, &String)> {
        self.spec()
            .and_then(|spec| spec.node_selector.as_ref())
            .into_iter()
            .flatten()
    }

    pub fn is_terminal(&self) -> bool {
        let status = self.pod.status.as_ref();
        matches!(
            status.and_then(|status| status.phase.as_deref()),
            Some("Succeeded" | "Failed")
        )
    }

    pub fn is_deleting(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    pub fn scheduler_name(&self) -> &str {
        let name = self
            .spec()
            .and_then(|spec| spec.scheduler_name.as_deref())
            .unwrap_or("");
        if name.is_empty() {
            DEFAULT_SCHEDULER
        } else {
            name
        }
    }
}

fn images(spec: &PodSpec) -> Vec<String> {
    let containers = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    let of_containers = containers.filter_map(|container| container.image.as_deref());
    let of_volumes = spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|volume| volume.image.as_ref()?.reference.as_deref());
    of_containers.chain(of_volumes).map(with_tag).collect()
}

/// Each once.
fn claims(pod: &Pod) -> Vec<ClaimUse> {
    let mut claims: Vec<ClaimUse> = Vec::new();
    for volume in pod_claims::volumes(pod) {
        let made = pod_claims::made(pod, volume);
        let is_ephemeral = made.is_some();
        let name = made.or_else(|| pod_claims::named(volume).map(str::to_owned));
        if let Some(name) = name.filter(|name| claims.iter().all(|one| one.name != *name)) {
            claims.push(ClaimUse { name, is_ephemeral });
        }
    }
    claims
}

/// A name without a tag means `latest`.
fn with_tag(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains(':') || last.contains('@') {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let mut found = Vec::new();
    for port in spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|one| one.ports.iter().flatten())
    {
        let Some(number) = port.host_port.filter(|number| *number > 0) else {
            continue;
        };
        let address = port
            .host_ip
            .as_deref()
            .filter(|ip| !ip.is_empty())
            .unwrap_or("0.0.0.0");
        found.push(HostPort {
            address: address.to_owned(),
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            port: number,
        });
    }
    found
}
