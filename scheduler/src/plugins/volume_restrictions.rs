//! Filter: rejects a node where a pod has the same disk and not both only read it (EBS: even then),
//! and every node while another pod uses a claim of which only one pod may make use
//! (ReadWriteOncePod).

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::volumes::Volumes;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use parking_lot::Mutex;
use std::sync::Arc;

const NAME: &str = "VolumeRestrictions";
const REASON_DISK: &str = "node(s) had no available disk";
const REASON_ONE_POD: &str = "node(s) unavailable due to PersistentVolumeClaim with \
                              ReadWriteOncePod access mode already in-use by another pod";

#[derive(Debug)]
pub struct VolumeRestrictions {
    volumes: Arc<Mutex<Volumes>>,
}

/// Claims that the pod must have for itself.
///
/// `uses` begins with how many of them others use, be these several, and sinks with each use that
/// ends: as upstream has it, one at a time goes where more than one pod was put to a claim by hand.
#[derive(Clone, Debug)]
struct Exclusive {
    claims: Arc<[String]>,
    uses: i64,
}

impl Exclusive {
    fn used(&self, pod: &PodInfo, world: &Snapshot) -> i64 {
        let others = || world.nodes.iter().flat_map(|node| &node.pods);
        let near = || others().filter(|other| other.key.namespace == pod.key.namespace);
        let is_used = |claim: &&String| near().any(|one| named(one).any(|name| name == *claim));
        i64::try_from(self.claims.iter().filter(is_used).count()).unwrap_or(i64::MAX)
    }

    fn uses_by(&self, pod: &PodInfo, other: &PodInfo) -> i64 {
        if other.key.namespace != pod.key.namespace || self.claims.is_empty() {
            return 0;
        }
        let used = named(other).filter(|name| self.claims.iter().any(|one| one == name));
        i64::try_from(used.count()).unwrap_or(i64::MAX)
    }
}

/// The claims that the pod names itself.
fn named(pod: &PodInfo) -> impl Iterator<Item = &str> {
    let claims = pod.claims.iter().filter(|claim| !claim.is_ephemeral);
    claims.map(|claim| claim.name.as_str())
}

fn is_for_one_pod(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    let mut modes = spec
        .and_then(|spec| spec.access_modes.as_deref())
        .unwrap_or(&[])
        .iter();
    modes.any(|mode| mode == "ReadWriteOncePod")
}

fn clash(pod: &PodInfo, other: &PodInfo) -> bool {
    let mut disks = pod.disks.iter();
    disks.any(|disk| other.disks.iter().any(|theirs| disk.conflicts(theirs)))
}

impl VolumeRestrictions {
    pub fn new(volumes: Arc<Mutex<Volumes>>) -> Self {
        Self { volumes }
    }

    fn exclusive_claims(&self, pod: &PodInfo) -> Result<Arc<[String]>, Reason> {
        let volumes = self.volumes.lock();
        let mut claims = Vec::new();
        for name in named(pod) {
            let key = ObjectKey::new(pod.key.namespace.as_str(), name);
            let Some(claim) = volumes.claim(&key) else {
                let text = format!("persistentvolumeclaim {name:?} not found");
                return Err(Reason::Told(text.into()));
            };
            if is_for_one_pod(claim) && !claims.iter().any(|known| known == name) {
                claims.push(name.to_owned());
            }
        }
        Ok(claims.into())
    }
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER
    }

    fn pre_filter(&self, pod: &PodInfo, world: &Snapshot, slot: &mut Slot) -> PreFilter {
        let claims = match self.exclusive_claims(pod) {
            Ok(claims) => claims,
            Err(reason) => return PreFilter::Refuse(Verdict::Unresolvable(reason)),
        };
        let mut exclusive = Exclusive { claims, uses: 0 };
        exclusive.uses = exclusive.used(pod, world);
        if pod.disks.is_empty() && exclusive.uses == 0 {
            return PreFilter::Skip;
        }
        slot.set(exclusive);
        PreFilter::Filter
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        if !pod.disks.is_empty() && node.pods.iter().any(|other| clash(pod, other)) {
            return Verdict::Unschedulable(Reason::Text(REASON_DISK));
        }
        match slot.get::<Exclusive>() {
            Some(exclusive) if exclusive.uses > 0 => {
                Verdict::Unschedulable(Reason::Text(REASON_ONE_POD))
            }
            _ => Verdict::Fit,
        }
    }

    fn add_pod(&self, pod: &PodInfo, other: &PodInfo, _node: &NodeInfo, slot: &mut Slot) {
        if let Some(exclusive) = slot.get_mut::<Exclusive>() {
            exclusive.uses += exclusive.uses_by(pod, other);
        }
    }

    fn remove_pod(&self, pod: &PodInfo, other: &PodInfo, _node: &NodeInfo, slot: &mut Slot) {
        if let Some(exclusive) = slot.get_mut::<Exclusive>() {
            exclusive.uses -= exclusive.uses_by(pod, other);
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::NodeAdded(_) => true,
            WorldChange::PodGone(other) => {
                let shares = || named(other).any(|claim| named(pod).any(|own| own == claim));
                // Disks have no namespace.
                clash(pod, other) || other.key.namespace == pod.key.namespace && shares()
            }
            WorldChange::Claim(claim) => {
                let key = key_of(claim.as_ref());
                key.namespace == pod.key.namespace && named(pod).any(|own| own == key.name)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
