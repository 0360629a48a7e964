//! What containers use: from the control groups that are made here where their names are known, as
//! with the runtime that is built in, and else what the runtime says.

use super::super::{RuntimeError, contract::*};
use super::messages::*;
use super::{CALL_MAX, Inner, missing};
use crate::grpc::{Channel, Code, Status};
use crate::usage::DiskUse;
use std::path::{Path, PathBuf};

/// Where the runtime keeps what fills disks.
#[derive(Debug)]
pub struct Disks {
    pub images: PathBuf,
    pub containers: PathBuf,
}

/// Asked once: a runtime that is moved to another disk is started anew.
pub async fn file_systems(channel: &Channel) -> Result<ImageFsInfoResponse, Status> {
    let asked = channel.unary(ImageFsInfoRequest::PATH, &ImageFsInfoRequest {}, CALL_MAX);
    match asked.await {
        Err(status) if status.code != Code::UNAVAILABLE => {
            tracing::warn!(%status, "the runtime does not say where its images are");
            Ok(ImageFsInfoResponse::default())
        }
        told => told,
    }
}

/// A runtime that does not say is taken to be on the agent's own.
pub fn disks(told: &ImageFsInfoResponse, data_dir: &Path) -> Disks {
    let images = directory(&told.image_filesystems);
    let containers = directory(&told.container_filesystems).or_else(|| images.clone());
    Disks {
        images: images.unwrap_or_else(|| data_dir.to_owned()),
        containers: containers.unwrap_or_else(|| data_dir.to_owned()),
    }
}

fn directory(told: &[FilesystemUsage]) -> Option<PathBuf> {
    let named = told.iter().filter_map(|one| one.fs_id.as_ref());
    let mut directories = named.map(|id| PathBuf::from(&id.mountpoint));
    directories.find(|directory| directory.is_absolute())
}

impl Inner {
    /// None when it does not run.
    async fn group_of(&self, id: &ContainerId) -> Result<Group, RuntimeError> {
        let container = self.container_status(id).await?;
        if container.state != ContainerState::Running {
            return Ok(Group::None);
        }
        let pod = self.sandbox_status(&container.sandbox).await?.config;
        let known = self.groups.container(&pod.cgroup, id);
        Ok(known.map_or(Group::Unknown, Group::Known))
    }

    pub async fn container_usage(&self, id: &ContainerId) -> Result<Option<Usage>, RuntimeError> {
        match self.group_of(id).await? {
            Group::None => Ok(None),
            Group::Known(group) => Ok(self.groups.usage(&group)),
            Group::Unknown => Ok(self.stats(id).await?.as_ref().and_then(usage)),
        }
    }

    pub async fn sandbox_usage(&self, id: &SandboxId) -> Result<Option<Usage>, RuntimeError> {
        let pod = self.sandbox_status(id).await?.config;
        Ok(self.groups.usage(&self.groups.pod(&pod.cgroup)))
    }

    /// The runtime walks the layer now and then, and tells what it found.
    pub async fn container_disk(&self, id: &ContainerId) -> Result<DiskUse, RuntimeError> {
        let layer = self.stats(id).await?.and_then(|stats| stats.writable_layer);
        Ok(layer.map_or_else(DiskUse::default, |layer| DiskUse {
            bytes: number(layer.used_bytes.as_ref()),
            inodes: number(layer.inodes_used.as_ref()),
        }))
    }

    async fn stats(&self, id: &ContainerId) -> Result<Option<ContainerStats>, RuntimeError> {
        let container_id = id.0.clone();
        let asked = self.call(ContainerStatsRequest { container_id }).await;
        let answer = asked.map_err(|status| missing("container", &id.0, status))?;
        Ok(answer.stats)
    }
}

/// Of a container.
enum Group {
    /// It does not run.
    None,
    /// The runtime chose the name.
    Unknown,
    Known(String),
}

fn usage(stats: &ContainerStats) -> Option<Usage> {
    let memory = stats.memory.as_ref()?;
    Some(Usage {
        cpu_ns: number(stats.cpu.as_ref()?.usage_core_nano_seconds.as_ref()),
        memory_usage_bytes: number(memory.usage_bytes.as_ref()),
        memory_working_set_bytes: number(memory.working_set_bytes.as_ref()),
        memory_rss_bytes: number(memory.rss_bytes.as_ref()),
        page_faults: number(memory.page_faults.as_ref()),
        major_page_faults: number(memory.major_page_faults.as_ref()),
        process_count: 0,
        swap_bytes: None,
        stalls: None,
    })
}

fn number(value: Option<&Uint64Value>) -> u64 {
    value.map_or(0, |value| value.value)
}
