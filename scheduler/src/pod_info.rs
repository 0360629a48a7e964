//! What the scheduler needs of a pod, computed once when the pod is first seen.
//!
//! A pod that waits for a node is kept whole beside it. Of one that is on a node nobody reads more
//! than what stands here: there may be thousands of them.

use crate::resources::{PodRequests, Resources};
use coracle_api::object::ObjectKey;
use coracle_client::pod_claims;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Affinity, ObjectReference, Pod, PodCondition, PodExtendedResourceClaimStatus, PodResourceClaim,
    PodResourceClaimStatus, PodSchedulingGate, PodSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;

mod disks; // Disks without a claim.
mod driven; // Volumes without a claim that a CSI driver attaches.
mod labels; // The pod's labels, in little room.
mod spread; // Topology spread constraints.
mod terms; // Terms of affinity to other pods.
mod traits; // What pods of one workload have in common.

pub use disks::Disk;
pub use driven::{Driven, of_volume, provisioner_driver};
pub use labels::PodLabels;
pub use spread::SpreadConstraint;
pub use terms::{AffinityTerm, PodTerms, WeightedTerm};
#[cfg(test)]
pub use traits::DERIVED;
pub use traits::{Memo, Traits, TraitsTable};

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
    /// Of a pod that waits for a node, or that is on one in memory alone.
    pub waiting: Option<Arc<Pod>>,
    pub key: ObjectKey,
    pub uid: String,
    pub resource_version: Box<str>,
    pub traits: Arc<Traits>,
    node: Box<str>,
    pub priority: i32,
    pub is_deleting: bool,
    pub is_terminal: bool,
    pub requests: Resources,
    /// What counts for scores before the pod has a node.
    pub scored: Resources,
    /// What counts for scores where it has one.
    pub scored_on_node: Resources,
    pub host_ports: Box<[HostPort]>,
    /// Images in the form in which nodes report them, with a tag; of a pod that waits.
    pub images: Box<[String]>,
    pub container_count: i64,
    pub claims: Box<[ClaimUse]>,
    /// Disks that not everybody may use at once, named without a claim.
    pub disks: Box<[Disk]>,
    /// Volumes of CSI drivers, named without a claim.
    pub driven: Box<[Driven]>,
    /// Of a pod that waits.
    pub spread: Box<[SpreadConstraint]>,
    /// When it began to run.
    pub started: Option<Timestamp>,
    pub generation: Option<i64>,
    /// The condition `DisruptionTarget`, where the pod has it.
    pub disruption: Option<Box<PodCondition>>,
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
        Self::sharing(pod, &TraitsTable::default())
    }

    /// The same, with what pods have in common kept in `table`.
    pub fn sharing(pod: Arc<Pod>, table: &TraitsTable) -> Self {
        Self::following(pod, table, None)
    }

    /// The same; `old` is the pod as it was, whose traits are kept where nothing of them changed.
    pub fn following(pod: Arc<Pod>, table: &TraitsTable, old: Option<&Self>) -> Self {
        let none = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&none);
        let (meta, status) = (&pod.metadata, pod.status.as_ref());
        let requests = PodRequests::of(&pod);
        let node = spec.node_name.as_deref().unwrap_or("");
        let is_waiting = node.is_empty();
        let when_waiting = |found: Vec<String>| if is_waiting { found } else { Vec::new() };
        let containers = spec.containers.len() + spec.init_containers.iter().flatten().count();
        let phase = status.and_then(|status| status.phase.as_deref());
        let spread = match is_waiting {
            true => spread::of(spec, meta.labels.as_ref()),
            false => Vec::new(),
        };
        Self {
            key: coracle_client::key_of(pod.as_ref()),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.as_deref().unwrap_or_default().into(),
            traits: old
                .and_then(|old| old.traits_if_of(meta))
                .unwrap_or_else(|| table.share(Traits::of(&pod, spec))),
            node: node.into(),
            priority: spec.priority.unwrap_or(0),
            is_deleting: meta.deletion_timestamp.is_some(),
            is_terminal: matches!(phase, Some("Succeeded" | "Failed")),
            requests: requests.asked,
            scored: requests.scored,
            scored_on_node: requests.scored_on_node,
            host_ports: host_ports(spec).into(),
            images: when_waiting(images(spec)).into(),
            claims: claims(&pod).into(),
            disks: disks::of(&pod).into(),
            driven: driven::of(&pod).into(),
            spread: spread.into(),
            container_count: i64::try_from(containers).unwrap_or(i64::MAX),
            started: status.and_then(|status| Some(status.start_time.as_ref()?.0)),
            generation: meta.generation,
            disruption: condition(&pod, "DisruptionTarget").cloned().map(Box::new),
            waiting: is_waiting.then_some(pod),
        }
    }

    /// The generation stands for the spec. Servers before v1.33 tell none of pods.
    fn traits_if_of(&self, meta: &ObjectMeta) -> Option<Arc<Traits>> {
        let is_same_spec = self.generation.is_some() && self.generation == meta.generation;
        let is_same = is_same_spec && self.traits.labels.are(meta.labels.as_ref());
        is_same.then(|| Arc::clone(&self.traits))
    }

    fn spec(&self) -> Option<&PodSpec> {
        self.waiting.as_ref()?.spec.as_ref()
    }

    /// Of a pod that waits.
    pub fn condition(&self, kind: &str) -> Option<&PodCondition> {
        condition(self.waiting.as_ref()?, kind)
    }

    pub fn node_name(&self) -> &str {
        &self.node
    }

    pub fn labels(&self) -> &PodLabels {
        &self.traits.labels
    }

    pub fn terms(&self) -> Option<&PodTerms> {
        self.traits.terms.as_deref()
    }

    /// Terms that another pod must meet, of affinity and of anti-affinity.
    pub fn required_terms(&self) -> [&[AffinityTerm]; 2] {
        self.terms()
            .map_or([&[], &[]], |terms| [&terms.affinity, &terms.anti_affinity])
    }

    /// Of a pod that waits, as are those below.
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

    pub fn gates(&self) -> &[PodSchedulingGate] {
        let gates = self
            .spec()
            .and_then(|spec| spec.scheduling_gates.as_deref());
        gates.unwrap_or(&[])
    }

    pub fn may_preempt(&self) -> bool {
        let policy = self
            .spec()
            .and_then(|spec| spec.preemption_policy.as_deref());
        policy != Some("Never")
    }

    /// The claims of devices that it names.
    pub fn device_claims(&self) -> &[PodResourceClaim] {
        let claims = self.spec().and_then(|spec| spec.resource_claims.as_deref());
        claims.unwrap_or(&[])
    }

    /// Those of them that were made for it.
    pub fn made_claims(&self) -> &[PodResourceClaimStatus] {
        let status = self.waiting.as_ref().and_then(|pod| pod.status.as_ref());
        let made = status.and_then(|status| status.resource_claim_statuses.as_deref());
        made.unwrap_or(&[])
    }

    /// The one that was made for its extended resources.
    fn extended_claim(&self) -> Option<&PodExtendedResourceClaimStatus> {
        let status = self.waiting.as_ref()?.status.as_ref()?;
        status.extended_resource_claim_status.as_ref()
    }

    /// What decides over its node is not the same.
    pub fn asks_otherwise_than(&self, other: &Self) -> bool {
        self.traits.labels != other.traits.labels
            || self.spec() != other.spec()
            || self.made_claims() != other.made_claims()
            || self.extended_claim() != other.extended_claim()
    }

    /// As events carry it.
    pub fn reference(&self) -> ObjectReference {
        let told = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: told(&self.key.namespace),
            name: told(&self.key.name),
            uid: told(&self.uid),
            resource_version: told(&self.resource_version),
            field_path: None,
        }
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

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    conditions.find(|condition| condition.type_ == kind)
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
