//! Which volume a claim gets: the one that is held for it, or else the smallest that fits, of
//! those with the fewest access modes besides the wanted ones.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_api::quantity::Quantity;
use coracle_api::selector::LabelSelector;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::{capacity, claim_ref, class_of_claim, class_of_volume, is_held_for, request};

/// What a claim asks for, read once.
#[derive(Debug)]
pub struct Wanted<'a> {
    claim: &'a PersistentVolumeClaim,
    class: &'a str,
    size: Quantity,
    mode: &'a str,
    access: &'a [String],
    attributes: &'a str,
    /// None where any labels do.
    selector: Option<LabelSelector>,
}

const FILESYSTEM: &str = "Filesystem";

impl<'a> Wanted<'a> {
    pub fn by(claim: &'a PersistentVolumeClaim) -> Self {
        let spec = claim.spec.as_ref();
        let selector = spec.and_then(|spec| spec.selector.as_ref());
        let selector = selector.map(|selector| {
            let value = serde_json::to_value(selector).unwrap_or_default();
            // Validation keeps out what cannot be read.
            LabelSelector::from_json(&value).unwrap_or_else(|_| LabelSelector::nothing())
        });
        let text = |field: Option<&'a String>| field.map_or("", String::as_str);
        Self {
            claim,
            class: class_of_claim(claim),
            size: request(claim),
            mode: spec.map_or(FILESYSTEM, |spec| mode(spec.volume_mode.as_deref())),
            access: spec
                .and_then(|spec| spec.access_modes.as_deref())
                .unwrap_or_default(),
            attributes: text(spec.and_then(|spec| spec.volume_attributes_class_name.as_ref())),
            selector,
        }
    }

    /// Why a volume that the claim names is not for it, in upstream's words. Its labels do not
    /// matter: who names a volume has chosen.
    pub fn mismatch(&self, volume: &PersistentVolume) -> Option<String> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let why = if volume.metadata.deletion_timestamp.is_some() {
            return Some(format!("the volume is marked for deletion {name:?}"));
        } else if capacity(volume).value() < self.size.value() {
            "requested PV is too small"
        } else if class_of_volume(volume) != self.class {
            "storageClassName does not match"
        } else if attributes(volume) != self.attributes {
            "volumeAttributesClassName does not match"
        } else if !self.has_mode_of(volume) {
            "incompatible volumeMode"
        } else if !self.may_be_accessed_as(volume) {
            "incompatible accessMode"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// A block device is not a file system.
    pub fn has_mode_of(&self, volume: &PersistentVolume) -> bool {
        let spec = volume.spec.as_ref();
        let theirs = spec.map_or(FILESYSTEM, |spec| mode(spec.volume_mode.as_deref()));
        theirs == self.mode
    }

    fn may_be_accessed_as(&self, volume: &PersistentVolume) -> bool {
        let modes = access(volume);
        self.access.iter().all(|wanted| modes.contains(wanted))
    }

    /// What even a volume that is held for the claim must be.
    fn fits_at_all(&self, volume: &PersistentVolume) -> bool {
        capacity(volume) >= self.size
            && self.has_mode_of(volume)
            && attributes(volume) == self.attributes
            && volume.metadata.deletion_timestamp.is_none()
            && self.may_be_accessed_as(volume)
    }

    /// The volume that is held for the claim, if it is one that can be.
    pub fn held<'v>(&self, volumes: &'v [Arc<PersistentVolume>]) -> Option<&'v PersistentVolume> {
        let mut volumes = volumes.iter().map(Arc::as_ref);
        volumes.find(|volume| is_held_for(volume, self.claim) && self.fits_at_all(volume))
    }

    /// Whether a volume that is nobody's is one for the claim.
    pub fn is_met_by(&self, volume: &PersistentVolume) -> bool {
        let phase = volume.status.as_ref().and_then(|s| s.phase.as_deref());
        claim_ref(volume).is_none()
            && phase == Some("Available")
            && class_of_volume(volume) == self.class
            && self.fits_at_all(volume)
            && self.selects(volume)
    }

    fn selects(&self, volume: &PersistentVolume) -> bool {
        let labels = volume.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|all| all.get(key)).map(String::as_str);
        let selector = self.selector.as_ref();
        selector.is_none_or(|selector| selector.matches_with(label))
    }

    /// The best of the volumes that are nobody's and pass `usable`; the same each time.
    pub fn best<'v>(
        &self,
        volumes: &'v [Arc<PersistentVolume>],
        usable: impl Fn(&PersistentVolume) -> bool,
    ) -> Option<&'v PersistentVolume> {
        let volumes = volumes.iter().map(Arc::as_ref);
        let fitting = volumes.filter(|volume| self.is_met_by(volume) && usable(volume));
        fitting.min_by(|a, b| Self::order(a, b))
    }

    /// Of two that fit, the better is less.
    pub fn order(a: &PersistentVolume, b: &PersistentVolume) -> Ordering {
        (distinct(access(a)).cmp(&distinct(access(b))))
            .then_with(|| capacity(a).cmp(&capacity(b)))
            .then_with(|| a.metadata.name.cmp(&b.metadata.name))
    }
}

fn mode(field: Option<&str>) -> &str {
    field.filter(|mode| !mode.is_empty()).unwrap_or(FILESYSTEM)
}

fn access(volume: &PersistentVolume) -> &[String] {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.access_modes.as_deref())
        .unwrap_or_default()
}

fn attributes(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.volume_attributes_class_name.as_deref())
        .unwrap_or("")
}

/// How many, and which, in one order.
fn distinct(modes: &[String]) -> (usize, BTreeSet<&str>) {
    let set: BTreeSet<&str> = modes.iter().map(String::as_str).collect();
    (set.len(), set)
}
