//! Filter: rejects a node outside of the zones and regions that the labels of the pod's volumes name.
//!
//! Volumes of today say where they are by node affinity, which is VolumeBinding's matter.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::volumes::Volumes;
use coracle_client::volumes::{class_of_claim, volume_name};
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use parking_lot::Mutex;
use std::sync::Arc;

const NAME: &str = "VolumeZone";
const REASON: &str = "node(s) had no available volume zone";

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
/// Each label, and what nodes of today have instead.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    (ZONE, ZONE),
    (REGION, REGION),
];
/// Between the zones of a volume that is in several.
const DELIMITER: &str = "__";

#[derive(Debug)]
pub struct VolumeZone {
    volumes: Arc<Mutex<Volumes>>,
}

/// What a label of a volume asks of a node.
#[derive(Clone, Debug)]
struct Place {
    label: &'static str,
    label_today: &'static str,
    values: Vec<String>,
}

impl Place {
    fn holds(&self, node: &NodeInfo) -> bool {
        let value = node.label(self.label);
        let value = value.or_else(|| node.label(self.label_today));
        value.is_some_and(|value| self.values.iter().any(|one| one == value))
    }
}

/// A label that names an empty zone is left aside.
fn places(volume: &PersistentVolume) -> impl Iterator<Item = Place> {
    LABELS.iter().filter_map(|(label, label_today)| {
        let value = volume.metadata.labels.as_ref()?.get(*label)?;
        let values = value.split(DELIMITER).map(|zone| zone.trim().to_owned());
        let values: Vec<String> = values.collect();
        let is_whole = values.iter().all(|zone| !zone.is_empty());
        is_whole.then_some(Place {
            label,
            label_today,
            values,
        })
    })
}

fn named(pod: &PodInfo) -> impl Iterator<Item = &str> {
    let claims = pod.claims.iter().filter(|claim| !claim.is_ephemeral);
    claims.map(|claim| claim.name.as_str())
}

/// The volume of a claim; `None` for one that waits for a node.
fn volume_of<'a>(
    claim: &PersistentVolumeClaim,
    known: &'a Volumes,
) -> Result<Option<&'a PersistentVolume>, String> {
    let name = volume_name(claim);
    if !name.is_empty() {
        let volume = known.volume(name).map(|volume| Some(volume.as_ref()));
        return volume.ok_or_else(|| format!("persistentvolume {name:?} not found"));
    }
    let class_name = class_of_claim(claim);
    if class_name.is_empty() {
        return Err("PersistentVolumeClaim had no pv name and storageClass name".to_owned());
    }
    let class = known
        .class(class_name)
        .ok_or_else(|| format!("storageclass.storage.k8s.io {class_name:?} not found"))?;
    match class.volume_binding_mode.as_deref() {
        Some("WaitForFirstConsumer") => Ok(None),
        Some(_) => Err("PersistentVolume had no name".to_owned()),
        None => Err(format!(
            "VolumeBindingMode not set for StorageClass {class_name:?}"
        )),
    }
}

impl VolumeZone {
    pub fn new(volumes: Arc<Mutex<Volumes>>) -> Self {
        Self { volumes }
    }

    fn places_of(&self, pod: &PodInfo) -> Result<Arc<[Place]>, String> {
        let volumes = self.volumes.lock();
        let mut found = Vec::new();
        for name in named(pod) {
            let key = ObjectKey::new(pod.key.namespace.as_str(), name);
            let claim = volumes
                .claim(&key)
                .ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
            found.extend(volume_of(claim, &volumes)?.into_iter().flat_map(places));
        }
        Ok(found.into())
    }
}

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        match self.places_of(pod) {
            Ok(places) if places.is_empty() => PreFilter::Skip,
            Ok(places) => {
                slot.set(places);
                PreFilter::Filter
            }
            Err(why) => PreFilter::Refuse(Verdict::Unresolvable(Reason::Told(why.into()))),
        }
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let places = slot.get::<Arc<[Place]>>();
        // A node without any such label is in no zone: a cluster of one place.
        let is_placed = LABELS.iter().any(|(label, _)| node.label(label).is_some());
        let mut places = places.into_iter().flat_map(|places| places.iter());
        if is_placed && !places.all(|place| place.holds(node)) {
            Verdict::Unresolvable(Reason::Text(REASON))
        } else {
            Verdict::Fit
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::Volume(_) | WorldChange::Provisioning => true,
            WorldChange::Claim(claim) => {
                let key = key_of(claim.as_ref());
                key.namespace == pod.key.namespace && named(pod).any(|own| own == key.name)
            }
            _ => change.changes(|old, new| old.labels != new.labels),
        }
    }
}

#[cfg(test)]
mod tests;
