//! From what was seen to a summary.

use super::look::{self, SeenPod};
use super::machine::{self, Machine};
use super::network;
use super::rates::Rates;
use super::storage;
use super::summary::{
    At, ContainerStats, FsStats, NodeStats, PodStats, RlimitStats, RuntimeStats, Summary,
};
use crate::pods::{Context, Pods};
use crate::runtime::{RuntimeError, Usage};
use crate::usage::DiskUse;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// When nothing was asked for a while, processor time is counted twice, this far apart.
const COUNTS_APART: Duration = Duration::from_millis(100);
/// How long a walk over the images is good for.
const IMAGES_FRESH: Duration = Duration::from_secs(60);

const NODE: &str = "/";
/// Upstream's names of the system's containers.
const KUBELET: &str = "kubelet";
const PODS: &str = "pods";

/// How much is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    All,
    CpuAndMemory,
}

#[derive(Debug)]
pub struct Stats {
    pub context: Arc<Context>,
    pub pods: Pods,
    pub node_name: String,
    started: Timestamp,
    rates: Mutex<Rates>,
    images: tokio::sync::Mutex<Option<(Instant, DiskUse)>>,
}

/// All that was counted at one time.
#[derive(Debug)]
pub(super) struct Seen {
    pub machine: Machine,
    pub pods: Vec<SeenPod>,
}

impl Stats {
    pub fn new(context: Arc<Context>, pods: Pods, node_name: String) -> Self {
        Self {
            started: context.clock.now(),
            context,
            pods,
            node_name,
            rates: Mutex::default(),
            images: tokio::sync::Mutex::default(),
        }
    }

    pub fn started(&self) -> Timestamp {
        self.started
    }

    pub(super) async fn look(&self) -> Result<Seen, RuntimeError> {
        let now = self.context.clock.now();
        Ok(Seen {
            pods: look::pods(self.context.runtime.as_ref(), now).await?,
            machine: machine::look(now),
        })
    }

    pub async fn summary(&self, part: Part) -> Result<Summary, RuntimeError> {
        let mut seen = self.look().await?;
        let mut system = self.system().await;
        if !self.rates.lock().is_fresh(self.context.clock.monotonic()) {
            self.count(&seen, &system);
            tokio::time::sleep(COUNTS_APART).await;
            seen = self.look().await?;
            system = self.system().await;
        }
        self.count(&seen, &system);
        let mut pods: Vec<PodStats> = {
            let rates = self.rates.lock();
            seen.pods.iter().map(|pod| pod.stats(&rates)).collect()
        };
        let now = seen.machine.at;
        match part {
            Part::All => self.add_storage(&mut pods, now).await,
            Part::CpuAndMemory => pods.iter_mut().for_each(only_cpu_and_memory),
        }
        Ok(Summary {
            node: self.node(&seen.machine, &system, part).await,
            pods,
        })
    }

    /// What runs beside the pods, and the pods together.
    async fn system(&self) -> Vec<System> {
        let pods = self.context.runtime.total_usage().await.unwrap_or(None);
        let pods = pods.map(|total| System {
            name: PODS,
            usage: total.usage,
            limit_bytes: total.memory_limit_bytes,
        });
        let own = machine::own_usage().map(|usage| System {
            name: KUBELET,
            usage,
            limit_bytes: None,
        });
        [own, pods].into_iter().flatten().collect()
    }

    fn count(&self, seen: &Seen, system: &[System]) {
        let system = system
            .iter()
            .map(|one| (one.name.to_owned(), one.usage.cpu_ns));
        let node = [(NODE.to_owned(), seen.machine.usage.cpu_ns)];
        let counts = look::counts(&seen.pods).chain(system).chain(node);
        self.rates
            .lock()
            .count(counts, self.context.clock.monotonic());
    }

    async fn add_storage(&self, stats: &mut [PodStats], now: Timestamp) {
        let known: HashMap<String, Arc<Pod>> = self
            .pods
            .list()
            .into_iter()
            .filter_map(|pod| Some((pod.metadata.uid.clone()?, pod)))
            .collect();
        for one in stats {
            if let Some(pod) = known.get(&one.pod_ref.uid) {
                storage::add(&self.context, one, pod, now).await;
            }
        }
    }

    async fn node(&self, machine: &Machine, system: &[System], part: Part) -> NodeStats {
        let now = machine.at;
        let rate = |name: &str| self.rates.lock().nano_cores(name);
        let limit = Some(machine.memory_bytes);
        let all = look::system_container(
            NODE,
            &machine.usage,
            machine.booted_at,
            now,
            rate(NODE),
            limit,
        );
        let containers = system.iter().map(|one| {
            let since = match one.name {
                KUBELET => self.started,
                _ => machine.booted_at,
            };
            let (usage, limit) = (&one.usage, one.limit_bytes);
            look::system_container(one.name, usage, since, now, rate(one.name), limit)
        });
        let node = NodeStats {
            node_name: self.node_name.clone(),
            system_containers: containers.collect(),
            start_time: At(machine.booted_at),
            cpu: all.cpu,
            memory: all.memory,
            swap: all.swap.map(|mut swap| {
                let used = swap.swap_usage_bytes.unwrap_or(0);
                swap.swap_available_bytes = Some(machine.swap_total_bytes.saturating_sub(used));
                swap
            }),
            ..NodeStats::default()
        };
        if part == Part::CpuAndMemory {
            return without_io(node);
        }
        NodeStats {
            io: all.io,
            network: network::stats(&machine.interfaces, At(now)),
            fs: storage::file_system(&self.context.data_dir, now),
            runtime: Some(RuntimeStats {
                image_fs: self.images(now).await,
                container_fs: self.layers(now),
            }),
            rlimit: crate::usage::node::processes().map(|processes| RlimitStats {
                time: At(now),
                process_ids_max: Some(processes.max),
                processes: Some(processes.count),
            }),
            ..node
        }
    }

    /// What the images use; whoever asks at the same time waits for one walk.
    async fn images(&self, now: Timestamp) -> Option<FsStats> {
        let directory = self.context.runtime.images_directory();
        let mut known = self.images.lock().await;
        let at = self.context.clock.monotonic();
        let fresh = known.filter(|(then, _)| at.saturating_duration_since(*then) < IMAGES_FRESH);
        let measured = match fresh {
            Some((_, measured)) => measured,
            None => {
                let path = directory.clone();
                let walk = move || crate::usage::disk::measure(&path);
                let measured = tokio::task::spawn_blocking(walk).await.ok()?.ok()?;
                *known = Some((at, measured));
                measured
            }
        };
        storage::used(&directory, measured, now)
    }

    /// Writable layers; what each uses is its container's.
    fn layers(&self, now: Timestamp) -> Option<FsStats> {
        storage::file_system(&self.context.runtime.containers_directory(), now)
    }
}

/// One of the system's containers.
#[derive(Debug)]
struct System {
    name: &'static str,
    usage: Usage,
    limit_bytes: Option<u64>,
}

fn only_cpu_and_memory(pod: &mut PodStats) {
    pod.network = None;
    pod.io = None;
    pod.processes = None;
    pod.containers
        .iter_mut()
        .for_each(|container: &mut ContainerStats| container.io = None);
}

fn without_io(mut node: NodeStats) -> NodeStats {
    node.system_containers
        .iter_mut()
        .for_each(|container| container.io = None);
    node
}
