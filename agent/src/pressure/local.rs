//! Pods that use more of the node's disk than they may: limits of `emptyDir` volumes, of the pod
//! and of its containers, looked at in this order. Pure; the words are upstream's.

use super::rank::bytes;
use crate::pods::{asked, state};
use crate::usage::pods::PodDisk;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Pod, Volume};

const STORAGE: &str = "ephemeral-storage";

/// Whether there is anything to hold against what the pod uses; if not, it is not measured.
pub fn is_limited(pod: &Pod) -> bool {
    let spec = state::spec(pod);
    let mut volumes = spec.volumes.iter().flatten();
    volumes.any(|volume| size_limit(volume).is_some())
        || state::init_containers(spec)
            .iter()
            .chain(&spec.containers)
            .filter_map(|container| container.resources.as_ref()?.limits.as_ref())
            .any(|limits| limits.contains_key(STORAGE))
}

/// What the pod is told when it is beyond a limit.
pub fn violation(pod: &Pod, disk: &PodDisk, has_image_fs: bool) -> Option<String> {
    of_volume(pod, disk)
        .or_else(|| of_pod(pod, disk))
        .or_else(|| of_container(pod, disk, has_image_fs))
}

/// Of an `emptyDir` on disk. One in memory has its limit from the kernel.
fn size_limit(volume: &Volume) -> Option<Quantity> {
    let source = volume.empty_dir.as_ref()?;
    let is_on_disk = source.medium.as_deref().unwrap_or_default().is_empty();
    let limit = Quantity::parse(&source.size_limit.as_ref()?.0).ok()?;
    (is_on_disk && !limit.is_zero() && !limit.is_negative()).then_some(limit)
}

fn of_volume(pod: &Pod, disk: &PodDisk) -> Option<String> {
    let mut volumes = state::spec(pod).volumes.iter().flatten();
    volumes.find_map(|volume| {
        let limit = size_limit(volume)?;
        let used = bytes(disk.volume(&volume.name)?.bytes);
        (used > limit).then(|| {
            let name = &volume.name;
            format!("Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". ")
        })
    })
}

fn of_pod(pod: &Pod, disk: &PodDisk) -> Option<String> {
    let limit = asked::limits(pod).get(STORAGE)?;
    let used = bytes(disk.total().bytes);
    (used > limit).then(|| {
        format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
    })
}

fn of_container(pod: &Pod, disk: &PodDisk, has_image_fs: bool) -> Option<String> {
    disk.containers.iter().find_map(|measured| {
        let mut containers = state::spec(pod).containers.iter();
        let container = containers.find(|container| container.name == measured.name)?;
        let limits = container.resources.as_ref()?.limits.as_ref()?;
        let limit = Quantity::parse(&limits.get(STORAGE)?.0).ok()?;
        let mut used = measured.logs;
        if !has_image_fs {
            used = used.plus(measured.root);
        }
        (!limit.is_zero() && bytes(used.bytes) > limit).then(|| {
            let name = &container.name;
            format!("Container {name} exceeded its local ephemeral storage limit \"{limit}\". ")
        })
    })
}

#[cfg(test)]
mod tests;
