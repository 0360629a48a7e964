//! Disks and volumes. A walk over directories costs: what one found is kept for a while.

use super::summary::{At, ClaimReference, ContainerStats, FsStats, PodStats, VolumeStats};
use crate::csi::Usage;
use crate::pods::Context;
use crate::pods::state::spec;
use crate::usage::disk::{self, DiskUse, FileSystem};
use crate::usage::pods::PodDisk;
use crate::volumes::{self, Kept};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume};
use std::path::{Path, PathBuf};

/// The whole of the file system that a directory is on.
pub fn file_system(path: &Path, now: Timestamp) -> Option<FsStats> {
    let found = disk::file_system(path)?;
    let used = found.total_bytes - found.free_bytes;
    let files = found.files - found.free_files;
    Some(FsStats {
        used_bytes: u64::try_from(used).ok(),
        inodes_used: u64::try_from(files).ok(),
        ..room(&found, now)
    })
}

/// Of the file system `path` is on, what something uses.
pub fn used(path: &Path, used: DiskUse, now: Timestamp) -> Option<FsStats> {
    let found = disk::file_system(path)?;
    Some(FsStats {
        used_bytes: Some(used.bytes),
        inodes_used: Some(used.inodes),
        ..room(&found, now)
    })
}

fn room(found: &FileSystem, now: Timestamp) -> FsStats {
    FsStats {
        time: At(now),
        available_bytes: u64::try_from(found.free_bytes).ok(),
        capacity_bytes: u64::try_from(found.total_bytes).ok(),
        inodes_free: u64::try_from(found.free_files).ok(),
        inodes: u64::try_from(found.files).ok(),
        ..FsStats::default()
    }
}

/// Adds to a pod's numbers what it keeps on disks.
pub async fn add(context: &Context, stats: &mut PodStats, pod: &Pod, now: Timestamp) {
    let Some(kept) = context.disk_of(pod).await else {
        return;
    };
    let directory = context.pod_directory(pod);
    let layers = context.runtime.containers_directory();
    let logs = context.data_dir.join(crate::pods::context::LOGS);
    for container in &mut stats.containers {
        of_container(container, &kept, &layers, &logs, now);
    }
    stats.ephemeral_storage = used(&directory, kept.total(), now);
    stats.volumes = volumes(context, directory, pod, &kept, now).await;
}

fn of_container(
    stats: &mut ContainerStats,
    kept: &PodDisk,
    layers: &Path,
    logs: &Path,
    now: Timestamp,
) {
    let mut all = kept.containers.iter();
    if let Some(own) = all.find(|own| own.name == stats.name) {
        stats.rootfs = used(layers, own.root, now);
        stats.logs = used(logs, own.logs, now);
    }
}

/// As a driver tells.
fn of_driver(told: Usage, now: Timestamp) -> FsStats {
    FsStats {
        time: At(now),
        available_bytes: Some(told.bytes.available),
        capacity_bytes: Some(told.bytes.total),
        used_bytes: Some(told.bytes.used),
        inodes_free: Some(told.inodes.available),
        inodes: Some(told.inodes.total),
        inodes_used: Some(told.inodes.used),
    }
}

async fn volumes(
    context: &Context,
    directory: PathBuf,
    pod: &Pod,
    measured: &PodDisk,
    now: Timestamp,
) -> Vec<VolumeStats> {
    let kept = Kept::load(&directory).unwrap_or_default();
    let mut found = Vec::new();
    let mut walked = Vec::new();
    for volume in spec(pod).volumes.iter().flatten() {
        let Some(path) = place(&directory, &kept, volume) else {
            continue;
        };
        let claim = claim(pod, volume);
        let told = told(context, &kept, volume).await;
        let fs = match (measured.volume(&volume.name), &claim) {
            _ if told.is_some() => told.map(|told| of_driver(told, now)),
            (Some(own), _) => used(&path, own, now),
            (None, Some(_)) => file_system(&path, now),
            // All of it is a file system of its own.
            (None, None) if is_memory(volume) => file_system(&path, now),
            // What the agent wrote, and small.
            (None, None) => {
                walked.push((found.len(), path));
                None
            }
        };
        found.push(VolumeStats {
            fs: fs.unwrap_or_default(),
            name: volume.name.clone(),
            pvc_ref: claim,
        });
    }
    let measure = move || {
        let each = walked.into_iter().filter_map(|(at, path)| {
            let measured = disk::measure(&path).ok()?;
            Some((at, used(&path, measured, now)?))
        });
        each.collect::<Vec<_>>()
    };
    for (at, fs) in tokio::task::spawn_blocking(measure)
        .await
        .unwrap_or_default()
    {
        found[at].fs = fs;
    }
    // What is not mounted has no numbers.
    found.retain(|volume| volume.fs.capacity_bytes.is_some());
    found
}

/// What its driver says of a volume; None for one of another kind, and when it does not tell.
async fn told(context: &Context, kept: &Kept, volume: &Volume) -> Option<Usage> {
    let found = kept.0.get(&volume.name)?;
    context.csi.usage(found, found.driver.as_ref()?).await
}

fn is_memory(volume: &Volume) -> bool {
    let source = volume.empty_dir.as_ref();
    source.is_some_and(|source| source.medium.as_deref() == Some("Memory"))
}

/// Directories of the node are nobody's volume, and are not counted.
fn place(directory: &Path, kept: &Kept, volume: &Volume) -> Option<PathBuf> {
    let is_device = || {
        kept.0
            .get(&volume.name)
            .is_some_and(|found| found.is_device)
    };
    if volume.host_path.is_some() || (volumes::is_found(volume) && is_device()) {
        return None;
    }
    volumes::path(directory, kept, volume).ok()
}

/// The claimed volumes of a pod, and where they are.
pub fn claims(directory: &Path, pod: &Pod) -> Vec<(ClaimReference, PathBuf)> {
    let volumes = spec(pod).volumes.iter().flatten();
    let claimed = volumes.filter_map(|volume| Some((claim(pod, volume)?, volume)));
    let claimed: Vec<_> = claimed.collect();
    if claimed.is_empty() {
        return Vec::new();
    }
    let kept = Kept::load(directory).unwrap_or_default();
    let placed = claimed.into_iter();
    placed
        .filter_map(|(claim, volume)| Some((claim, place(directory, &kept, volume)?)))
        .collect()
}

fn claim(pod: &Pod, volume: &Volume) -> Option<ClaimReference> {
    let meta = &pod.metadata;
    let name = match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => claim.claim_name.clone(),
        (None, Some(_)) => format!("{}-{}", meta.name.as_deref()?, volume.name),
        (None, None) => return None,
    };
    Some(ClaimReference {
        name,
        namespace: meta.namespace.clone()?,
    })
}

#[cfg(test)]
mod tests;
