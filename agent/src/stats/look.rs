//! Reads pods and containers that run: counts of their control groups and of their networks.

use super::network::{self, Interface};
use super::rates::Rates;
use super::summary::{
    At, ContainerStats, CpuStats, IoStats, MemoryStats, PodReference, PodStats, ProcessStats,
    SwapStats,
};
use crate::runtime::{
    ContainerState, ContainerStatus, Runtime, RuntimeError, SandboxState, SandboxStatus, Usage,
};
use jiff::Timestamp;
use std::fs;

/// A pod whose sandbox stands.
#[derive(Clone, Debug)]
pub struct SeenPod {
    pub sandbox: SandboxStatus,
    pub at: Timestamp,
    /// None where pods have no groups.
    pub usage: Option<Usage>,
    pub interfaces: Vec<Interface>,
    pub containers: Vec<SeenContainer>,
}

#[derive(Clone, Debug)]
pub struct SeenContainer {
    pub status: ContainerStatus,
    pub usage: Usage,
}

/// Sorted by namespace and name. What ends meanwhile is left out.
pub async fn pods(runtime: &dyn Runtime, now: Timestamp) -> Result<Vec<SeenPod>, RuntimeError> {
    let mut sandboxes = runtime.list_sandboxes().await?;
    sandboxes.retain(|sandbox| sandbox.state == SandboxState::Ready);
    sandboxes.sort_by(|left, right| key(left).cmp(&key(right)));
    let containers = runtime.list_containers().await?;
    let mut seen = Vec::with_capacity(sandboxes.len());
    for sandbox in sandboxes {
        let running = containers.iter().filter(|container| {
            container.sandbox == sandbox.id && container.state == ContainerState::Running
        });
        let mut own = Vec::new();
        for status in running {
            if let Ok(Some(usage)) = runtime.container_usage(&status.id).await {
                let status = status.clone();
                own.push(SeenContainer { status, usage });
            }
        }
        own.sort_by(|left, right| left.status.config.name.cmp(&right.status.config.name));
        let interfaces = own
            .iter()
            .find_map(|container| interfaces(container.status.pid?));
        seen.push(SeenPod {
            usage: runtime.sandbox_usage(&sandbox.id).await.unwrap_or(None),
            sandbox,
            at: now,
            interfaces: interfaces.unwrap_or_default(),
            containers: own,
        });
    }
    Ok(seen)
}

fn key(sandbox: &SandboxStatus) -> (&str, &str) {
    let config = &sandbox.config;
    (&config.pod_namespace, &config.pod_name)
}

fn interfaces(pid: i32) -> Option<Vec<Interface>> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    Some(network::parse(&text))
}

/// What processors were used of, under the names that the rates are asked for.
pub fn counts(pods: &[SeenPod]) -> impl Iterator<Item = (String, u64)> {
    pods.iter().flat_map(|pod| {
        let own = pod
            .usage
            .map(|usage| (pod.sandbox.id.0.clone(), usage.cpu_ns));
        let containers = pod.containers.iter();
        let containers = containers.map(|one| (one.status.id.0.clone(), one.usage.cpu_ns));
        own.into_iter().chain(containers)
    })
}

impl SeenPod {
    /// All but what is on disks.
    pub fn stats(&self, rates: &Rates) -> PodStats {
        let config = &self.sandbox.config;
        let time = At(self.at);
        let limit = config.resources.memory_limit_bytes;
        let usage = self.usage.as_ref();
        PodStats {
            pod_ref: PodReference {
                name: config.pod_name.clone(),
                namespace: config.pod_namespace.clone(),
                uid: config.pod_uid.clone(),
            },
            start_time: At(self.sandbox.created_at),
            containers: self
                .containers
                .iter()
                .map(|one| one.stats(time, rates))
                .collect(),
            cpu: usage.map(|usage| cpu(usage, time, rates.nano_cores(&self.sandbox.id.0))),
            memory: usage.map(|usage| memory(usage, time, limit)),
            io: usage.and_then(|usage| io(usage, time)),
            network: network::stats(&self.interfaces, time),
            volumes: Vec::new(),
            ephemeral_storage: None,
            processes: usage.map(|usage| ProcessStats {
                process_count: Some(usage.process_count),
            }),
            swap: usage.and_then(|usage| swap(usage, time)),
        }
    }
}

impl SeenContainer {
    fn stats(&self, time: At, rates: &Rates) -> ContainerStats {
        let (status, usage) = (&self.status, &self.usage);
        ContainerStats {
            name: status.config.name.clone(),
            start_time: At(status.created_at),
            cpu: Some(cpu(usage, time, rates.nano_cores(&status.id.0))),
            memory: Some(memory(
                usage,
                time,
                status.config.resources.memory_limit_bytes,
            )),
            io: io(usage, time),
            rootfs: None,
            logs: None,
            swap: swap(usage, time),
        }
    }
}

fn cpu(usage: &Usage, time: At, nano_cores: Option<u64>) -> CpuStats {
    CpuStats {
        time,
        usage_nano_cores: nano_cores,
        usage_core_nano_seconds: Some(usage.cpu_ns),
        psi: usage.stalls.map(|stalls| (&stalls.cpu).into()),
    }
}

/// 0 stands for no limit.
fn memory(usage: &Usage, time: At, limit_bytes: i64) -> MemoryStats {
    let limit = u64::try_from(limit_bytes).ok().filter(|limit| *limit > 0);
    MemoryStats {
        time,
        available_bytes: limit.map(|limit| limit.saturating_sub(usage.memory_working_set_bytes)),
        usage_bytes: Some(usage.memory_usage_bytes),
        working_set_bytes: Some(usage.memory_working_set_bytes),
        rss_bytes: Some(usage.memory_rss_bytes),
        page_faults: Some(usage.page_faults),
        major_page_faults: Some(usage.major_page_faults),
        psi: usage.stalls.map(|stalls| (&stalls.memory).into()),
    }
}

fn io(usage: &Usage, time: At) -> Option<IoStats> {
    let stalls = usage.stalls?;
    Some(IoStats {
        time,
        psi: Some((&stalls.io).into()),
    })
}

fn swap(usage: &Usage, time: At) -> Option<SwapStats> {
    Some(SwapStats {
        time,
        swap_available_bytes: None,
        swap_usage_bytes: Some(usage.swap_bytes?),
    })
}

/// What a group uses as it stands for one of the system's own containers.
pub fn system_container(
    name: &str,
    usage: &Usage,
    since: Timestamp,
    now: Timestamp,
    nano_cores: Option<u64>,
    limit_bytes: Option<u64>,
) -> ContainerStats {
    let time = At(now);
    let limit = limit_bytes.and_then(|limit| i64::try_from(limit).ok());
    ContainerStats {
        name: name.to_owned(),
        start_time: At(since),
        cpu: Some(cpu(usage, time, nano_cores)),
        memory: Some(memory(usage, time, limit.unwrap_or(0))),
        io: io(usage, time),
        rootfs: None,
        logs: None,
        swap: swap(usage, time),
    }
}
