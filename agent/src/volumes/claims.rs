//! Which volume a pod's claim stands for, or why the pod has to wait. Pure; words are upstream's.

use k8s_openapi::api::core::v1::{Container, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use std::collections::BTreeSet;

use crate::pods::state;

const PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Of a volume: a group that its users are in.
const GROUP_ANNOTATION: &str = "pv.beta.kubernetes.io/gid";

/// A claim that a pod refers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The pod's own name of the volume.
    pub volume: String,
    pub claim: String,
    pub read_only: bool,
    /// The claim was made for this pod, and must be its own.
    pub is_own: bool,
}

/// None for a volume that needs no claim.
pub fn reference(pod: &Pod, volume: &Volume) -> Option<Reference> {
    let of = |claim: String, read_only: Option<bool>, is_own: bool| Reference {
        volume: volume.name.clone(),
        claim,
        read_only: read_only.unwrap_or(false),
        is_own,
    };
    if let Some(source) = &volume.persistent_volume_claim {
        return Some(of(source.claim_name.clone(), source.read_only, false));
    }
    volume.ephemeral.as_ref()?;
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    Some(of(format!("{pod}-{}", volume.name), None, true))
}

/// Names of the volumes that containers mount, and of those that they have as devices.
#[derive(Debug, Default)]
pub struct Used {
    pub mounts: BTreeSet<String>,
    pub devices: BTreeSet<String>,
}

impl Used {
    pub fn by(pod: &Pod) -> Self {
        let spec = state::spec(pod);
        let mut used = Self::default();
        let ephemeral = spec.ephemeral_containers.iter().flatten();
        for mount in ephemeral.flat_map(|one| one.volume_mounts.iter().flatten()) {
            used.mounts.insert(mount.name.clone());
        }
        let containers = state::init_containers(spec).iter().chain(&spec.containers);
        containers.for_each(|container| used.add(container));
        used
    }

    fn add(&mut self, container: &Container) {
        let mounts = container.volume_mounts.iter().flatten();
        self.mounts.extend(mounts.map(|mount| mount.name.clone()));
        let devices = container.volume_devices.iter().flatten();
        self.devices
            .extend(devices.map(|device| device.name.clone()));
    }

    pub fn has(&self, volume: &str) -> bool {
        self.mounts.contains(volume) || self.devices.contains(volume)
    }
}

/// What the pod's claims are read for; volumes that no container uses need none.
pub fn references(pod: &Pod) -> Vec<Reference> {
    let used = Used::by(pod);
    let volumes = state::spec(pod).volumes.iter().flatten();
    let used = volumes.filter(|volume| used.has(&volume.name));
    used.filter_map(|volume| reference(pod, volume)).collect()
}

/// The name of the volume that is bound to the claim.
pub fn bound<'a>(
    pod: &Pod,
    reference: &Reference,
    claim: Option<&'a PersistentVolumeClaim>,
) -> Result<&'a str, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let refused = |why: &str| {
        let name = &reference.claim;
        Err(format!("error processing PVC {namespace}/{name}: {why}"))
    };
    let Some(claim) = claim else {
        let name = &reference.claim;
        return refused(&format!(
            "failed to fetch PVC from API server: persistentvolumeclaims {name:?} not found"
        ));
    };
    let meta = &claim.metadata;
    let protected = meta.finalizers.iter().flatten();
    let is_protected = protected.into_iter().any(|one| one == PROTECTION);
    if meta.deletion_timestamp.is_some() && !is_protected {
        return refused("PVC is being deleted");
    }
    let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
    if phase != Some("Bound") {
        return refused("PVC is not bound");
    }
    let spec = claim.spec.as_ref();
    let volume = spec.and_then(|spec| spec.volume_name.as_deref());
    let Some(volume) = volume.filter(|name| !name.is_empty()) else {
        return refused("PVC has empty pvc.Spec.VolumeName");
    };
    let owners = meta.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    let is_own = owners.any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref());
    if reference.is_own && !is_own {
        let (name, pod) = (&reference.claim, pod.metadata.name.as_deref());
        let pod = pod.unwrap_or_default();
        return Err(format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
        ));
    }
    Ok(volume)
}

/// Whether the volume is the claim's and is used as what it is.
pub fn check_volume(
    pod: &Pod,
    reference: &Reference,
    claim: &PersistentVolumeClaim,
    name: &str,
    volume: Option<&PersistentVolume>,
) -> Result<(), String> {
    let refused = |why: String| {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let claim = &reference.claim;
        Err(format!("error processing PVC {namespace}/{claim}: {why}"))
    };
    let Some(spec) = volume.and_then(|volume| volume.spec.as_ref()) else {
        return refused(format!(
            "failed to fetch PV {name} from API server: persistentvolumes {name:?} not found"
        ));
    };
    let Some(of) = &spec.claim_ref else {
        return refused(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet \
             bound to the claim"
        ));
    };
    if of.uid != claim.metadata.uid {
        let (of, uid) = (of.uid.as_deref(), claim.metadata.uid.as_deref());
        return refused(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {} does not point to claim.UID {}",
            of.unwrap_or_default(),
            uid.unwrap_or_default()
        ));
    }
    let (used, mode) = (Used::by(pod), mode(spec.volume_mode.as_deref()));
    let wrong = |list: &str| {
        let volume = &reference.volume;
        Err(format!(
            "volume {volume} has volumeMode {mode}, but is specified in {list}"
        ))
    };
    if used.mounts.contains(&reference.volume) && mode != "Filesystem" {
        return wrong("volumeMounts");
    }
    if used.devices.contains(&reference.volume) && mode != "Block" {
        return wrong("volumeDevices");
    }
    Ok(())
}

fn mode(given: Option<&str>) -> &str {
    given
        .filter(|mode| !mode.is_empty())
        .unwrap_or("Filesystem")
}

pub fn is_block(volume: &PersistentVolume) -> bool {
    let spec = volume.spec.as_ref();
    mode(spec.and_then(|spec| spec.volume_mode.as_deref())) == "Block"
}

/// Only one pod may use it at a time.
pub fn is_for_one_pod(volume: &PersistentVolume) -> bool {
    let spec = volume.spec.as_ref();
    let modes = spec.and_then(|spec| spec.access_modes.as_deref());
    matches!(modes, Some([only]) if only == "ReadWriteOncePod")
}

/// The group that the volume's users are in, beside their own.
pub fn group(volume: &PersistentVolume) -> Option<i64> {
    let annotations = volume.metadata.annotations.as_ref()?;
    annotations
        .get(GROUP_ANNOTATION)?
        .parse()
        .ok()
        .filter(|group| *group > 0)
}

#[cfg(test)]
mod tests;
