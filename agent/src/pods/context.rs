//! What all pod workers of a node share.

use crate::PodDns;
use crate::dns::{self, ClusterDns};
use crate::network::Network;
use crate::network::view::{self, View};
use crate::node::OwnAddresses;
use crate::pods::environment::MASTER;
use crate::runtime::{Runtime, RuntimeError, SandboxStatus};
use crate::usage::pods::{Places, PodDisk};
use coracle_api::amounts::Amounts;
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::{EventType, Recorder, reference};
use coracle_client::informer::Informer;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Of the agent's directory, what pods keep files in.
pub const PODS: &str = "pods";
/// For a runtime that starts at the same time, and how often it is asked.
const RUNTIME_START_MAX: Duration = Duration::from_secs(60);
const RUNTIME_RETRY: Duration = Duration::from_millis(500);
/// Of the agent's directory, what containers' logs are in.
pub const LOGS: &str = "logs";

/// How this node confines pods.
#[derive(Debug, Default)]
pub struct Confines {
    /// `--seccomp-default`.
    pub seccomp_default: bool,
    /// Where profiles of seccomp are.
    pub seccomp_root: PathBuf,
    /// Processes of a pod; 0 for as many as the node has.
    pub pod_pids_max: i64,
    pub admission: super::admission::Rules,
    pub id_ranges: Arc<super::id_ranges::IdRanges>,
}

pub struct Context {
    pub client: Client,
    pub runtime: Arc<dyn Runtime>,
    pub network: Arc<Network>,
    pub recorder: Recorder,
    pub clock: Clock,
    /// Services, as far as they are known.
    pub view: View,
    pub dns: PodDns,
    /// Where the node's resolvers are named. None: the usual file.
    pub resolv_conf: Option<PathBuf>,
    pub images: super::image::Puller,
    pub tokens: super::tokens::Tokens,
    pub csi: Arc<crate::csi::Csi>,
    pub volume_writes: super::VolumeWrites,
    /// What the pods were given of the node.
    pub ledger: super::ledger::Ledger,
    /// What was measured of pods' disks.
    pub disks: crate::usage::Disks,
    /// What the node is short of.
    pub pressures: crate::pressure::Conditions,
    pub node_name: String,
    /// Of this Node alone.
    pub node: Informer<Node>,
    /// What of the node is for pods.
    pub allocatable: Amounts,
    pub logs: crate::LogBounds,
    pub tallies: super::Tallies,
    /// By which others know this node.
    pub host: OwnAddresses,
    /// What the node has for pods.
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// The agent's own directory.
    pub data_dir: PathBuf,
    pub local_path: crate::local_path::Directories,
    pub confines: Confines,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Context {
    /// What former agents left. A runtime that starts anew at the same time is waited for.
    pub async fn first_sandboxes(&self) -> Result<Vec<SandboxStatus>, RuntimeError> {
        let begun = self.clock.monotonic();
        loop {
            match self.runtime.list_sandboxes().await {
                Err(error) if begun.elapsed() < RUNTIME_START_MAX => {
                    tracing::info!(%error, "asks the runtime again for its sandboxes");
                }
                answer => return answer,
            }
            tokio::time::sleep(RUNTIME_RETRY).await;
        }
    }

    /// None while the cluster does not say where names are answered.
    pub fn cluster_dns(&self) -> Option<ClusterDns> {
        dns::cluster_dns(&self.dns, &self.view)
    }

    /// What names of Services end in.
    pub fn cluster_domain(&self) -> String {
        let told = self.dns.domain.clone();
        let known = || self.cluster_dns().map(|dns| dns.domain);
        let domain = told.or_else(known);
        domain.unwrap_or_else(|| dns::DOMAIN_DEFAULT.to_owned())
    }

    /// Those that a pod of the namespace has variables of.
    pub fn services_for(&self, namespace: &str) -> Vec<(view::Key, Arc<view::Service>)> {
        let mut services = self.view.services_in(namespace);
        if !services.iter().any(|(key, _)| &**key == MASTER) {
            let master = self.view.get(MASTER).and_then(|entry| entry.service);
            services.extend(master.map(|service| (MASTER.into(), service)));
        }
        services
    }

    pub fn pods_directory(&self) -> PathBuf {
        self.data_dir.join(PODS)
    }

    pub fn security_defaults(&self) -> super::security::Defaults<'_> {
        super::security::Defaults {
            seccomp_root: &self.confines.seccomp_root,
            seccomp_default: self.confines.seccomp_default,
        }
    }

    pub fn pod_directory(&self, pod: &Pod) -> PathBuf {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        crate::volumes::pod_directory(&self.pods_directory(), uid)
    }

    /// Of the logs of all containers of a pod.
    pub fn log_directory(&self, pod: &Pod) -> PathBuf {
        log_directory(&self.data_dir, pod)
    }

    /// What the pod keeps on the node's disk, at most some minutes old; None when it cannot be
    /// measured.
    pub async fn disk_of(&self, pod: &Pod) -> Option<Arc<PodDisk>> {
        let places = Places {
            directory: self.pod_directory(pod),
            logs: self.log_directory(pod),
        };
        let now = self.clock.monotonic();
        let measured = self.disks.of_pod(self.runtime.as_ref(), pod, places, now);
        match measured.await {
            Ok(disk) => Some(disk),
            Err(error) => {
                let pod = pod.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(%error, pod, "cannot measure what a pod keeps on disk");
                None
            }
        }
    }

    pub fn event(&self, pod: &Pod, type_: EventType, reason: &str, message: impl Into<String>) {
        self.recorder.event(&reference(pod), type_, reason, message);
    }

    /// About one container, which `kubectl describe` shows by its field path.
    pub fn container_event(
        &self,
        pod: &Pod,
        container: &str,
        type_: EventType,
        reason: &str,
        message: impl Into<String>,
    ) {
        let mut object = reference(pod);
        let spec = super::state::spec(pod);
        let mut inits = super::state::init_containers(spec).iter();
        let list = if inits.any(|init| init.name == container) {
            "initContainers"
        } else if super::ephemeral::find(spec, container).is_some() {
            "ephemeralContainers"
        } else {
            "containers"
        };
        object.field_path = Some(format!("spec.{list}{{{container}}}"));
        self.recorder.event(&object, type_, reason, message);
    }
}

pub fn log_directory(data_dir: &Path, pod: &Pod) -> PathBuf {
    let meta = &pod.metadata;
    data_dir.join(LOGS).join(format!(
        "{}_{}_{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
        meta.uid.as_deref().unwrap_or_default(),
    ))
}

#[cfg(test)]
pub mod testing; // One to test with.
