//! What pods and their containers use.

use super::disk::{self, DiskUse};
use crate::pods::state::spec;
use crate::runtime::{Runtime, RuntimeError, Usage};
use k8s_openapi::api::core::v1::{Pod, Volume};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a walk's numbers are good for at least, as upstream's volumes are; a walk that takes
/// long is repeated less often still.
const DISK_FRESH: Duration = Duration::from_secs(60);
/// Of the time between two walks, one in this many is spent walking at most.
const DISK_SHARE: u32 = 20;

#[derive(Clone, Debug, Default)]
pub struct PodUsage {
    pub uid: String,
    /// Of the pod's group; None when nothing of it runs.
    pub usage: Option<Usage>,
    pub containers: Vec<ContainerUsage>,
    /// None: not asked for, or not measured.
    pub disk: Option<Arc<PodDisk>>,
}

/// The newest instance of a container, when it runs.
#[derive(Clone, Debug)]
pub struct ContainerUsage {
    pub name: String,
    pub usage: Usage,
}

/// What a pod keeps on the node's disk.
#[derive(Clone, Debug, Default)]
pub struct PodDisk {
    /// By container: the writable layer and the logs.
    pub containers: Vec<ContainerDisk>,
    /// Those that are the node's own space: `emptyDir` on disk, and files from objects.
    pub volumes: Vec<(String, DiskUse)>,
    /// What the agent wrote for the pod.
    pub other: DiskUse,
}

#[derive(Clone, Debug, Default)]
pub struct ContainerDisk {
    pub name: String,
    pub root: DiskUse,
    pub logs: DiskUse,
}

impl PodDisk {
    /// All that counts as the pod's ephemeral storage.
    pub fn total(&self) -> DiskUse {
        let containers = self.containers.iter();
        let containers = containers.map(|container| container.root.plus(container.logs));
        let volumes = self.volumes.iter().map(|(_, used)| *used);
        let all = containers.chain(volumes).chain([self.other]);
        all.fold(DiskUse::default(), DiskUse::plus)
    }

    pub fn volume(&self, name: &str) -> Option<DiskUse> {
        let mut volumes = self.volumes.iter();
        volumes.find(|(own, _)| own == name).map(|(_, used)| *used)
    }
}

/// Memory, processor and processes of a pod and its containers.
pub async fn of_pod(runtime: &dyn Runtime, pod: &Pod) -> Result<PodUsage, RuntimeError> {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let observed = crate::pods::observe(runtime, &uid).await?;
    let mut found = PodUsage {
        usage: match observed.ready_sandbox() {
            Some(sandbox) => runtime.sandbox_usage(&sandbox.id).await?,
            None => None,
        },
        uid,
        ..PodUsage::default()
    };
    for container in observed.running() {
        // One that ended meanwhile uses nothing.
        if let Ok(Some(usage)) = runtime.container_usage(&container.id).await {
            found.containers.push(ContainerUsage {
                name: container.config.name.clone(),
                usage,
            });
        }
    }
    Ok(found)
}

/// What was measured of pods' disks, by uid. Who asks during a walk waits for what it finds.
#[derive(Debug, Default)]
pub struct Disks(Mutex<HashMap<String, Arc<Slot>>>);

type Slot = tokio::sync::Mutex<Option<Measured>>;

#[derive(Debug)]
struct Measured {
    disk: Arc<PodDisk>,
    at: Instant,
    took: Duration,
}

/// Where a pod's files are.
#[derive(Clone, Debug)]
pub struct Places {
    pub directory: PathBuf,
    pub logs: PathBuf,
}

impl Disks {
    /// From memory while it is fresh, else by a walk on a thread that may block.
    pub async fn of_pod(
        &self,
        runtime: &dyn Runtime,
        pod: &Pod,
        places: Places,
        now: Instant,
    ) -> Result<Arc<PodDisk>, RuntimeError> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let slot = self.0.lock().entry(uid.clone()).or_default().clone();
        let mut slot = slot.lock().await;
        if let Some(known) = slot.as_ref().filter(|known| known.is_fresh(now)) {
            return Ok(known.disk.clone());
        }
        let observed = crate::pods::observe(runtime, &uid).await?;
        let mut disk = PodDisk::default();
        for container in &observed.containers {
            let root = runtime.container_disk(&container.id).await?;
            add(&mut disk.containers, &container.config.name, root);
        }
        let volumes: Vec<_> = spec(pod)
            .volumes
            .iter()
            .flatten()
            .filter_map(|volume| Some((volume.name.clone(), local(&places.directory, volume)?)))
            .collect();
        let walked = tokio::task::spawn_blocking(move || walk(disk, &volumes, &places)).await;
        let disk = walked.map_err(|error| RuntimeError::Failed(error.to_string()))?;
        let disk = Arc::new(disk);
        *slot = Some(Measured {
            disk: disk.clone(),
            at: now,
            took: now.elapsed(),
        });
        Ok(disk)
    }

    /// Forgets pods that are gone.
    pub fn retain(&self, uids: &HashSet<String>) {
        self.0.lock().retain(|uid, _| uids.contains(uid));
    }
}

impl Measured {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < DISK_FRESH.max(self.took * DISK_SHARE)
    }
}

fn add(containers: &mut Vec<ContainerDisk>, name: &str, root: DiskUse) {
    match containers.iter_mut().find(|known| known.name == name) {
        // Ended instances have their layers still.
        Some(known) => known.root = known.root.plus(root),
        None => containers.push(ContainerDisk {
            name: name.to_owned(),
            root,
            logs: DiskUse::default(),
        }),
    }
}

/// Where a volume is that takes the node's own space.
fn local(directory: &Path, volume: &Volume) -> Option<PathBuf> {
    let plugin = match &volume.empty_dir {
        Some(source) if source.medium.as_deref().unwrap_or_default().is_empty() => {
            "kubernetes.io~empty-dir"
        }
        None if volume.config_map.is_some() => "kubernetes.io~configmap",
        _ => return None,
    };
    let volumes = directory.join(crate::volumes::VOLUMES);
    Some(volumes.join(plugin).join(&volume.name))
}

fn walk(mut disk: PodDisk, volumes: &[(String, PathBuf)], places: &Places) -> PodDisk {
    let measured = |path: &Path| match disk::measure(path) {
        Ok(used) => used,
        Err(error) => {
            tracing::debug!(%error, path = %path.display(), "cannot measure what is used");
            DiskUse::default()
        }
    };
    for container in &mut disk.containers {
        container.logs = measured(&places.logs.join(&container.name));
    }
    for (name, path) in volumes {
        disk.volumes.push((name.clone(), measured(path)));
    }
    for name in [crate::pods::HOSTS, crate::pods::RESOLV_CONF] {
        disk.other = disk.other.plus(measured(&places.directory.join(name)));
    }
    disk
}

#[cfg(test)]
mod tests;
