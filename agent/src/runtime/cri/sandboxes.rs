//! Sandboxes: what is asked of the runtime, and what it says of them.
//!
//! The configuration is kept as an annotation of the sandbox, since containers are created with
//! it, be it by an agent that has started anew. What is not ours has what its status tells.

use super::super::{RuntimeError, contract::*};
use super::messages::{self as cri, *};
use super::{CREATE_MAX, Inner, failed, missing, time};
use crate::families::Families;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;

/// Whose sandboxes are pods of a cluster; what was made by hand is left alone.
pub const UID_LABEL: &str = "io.kubernetes.pod.uid";
/// `SandboxConfig` without what the runtime tells anyway.
pub const CONFIG_ANNOTATION: &str = "coracle/sandbox-config";

impl Inner {
    pub async fn run_sandbox(&self, config: SandboxConfig) -> Result<SandboxId, RuntimeError> {
        let parent = self.groups.parent(&config.cgroup);
        self.groups.make_pod(&config.cgroup, &config.resources)?;
        let request = RunPodSandboxRequest {
            config: Some(message(&config, &parent)),
            runtime_handler: config.handler.clone(),
        };
        match self.call_within(request, CREATE_MAX).await {
            Ok(answer) => Ok(SandboxId(answer.pod_sandbox_id)),
            Err(status) => {
                self.groups.remove_pod(&config.cgroup);
                Err(failed(status))
            }
        }
    }

    pub async fn stop_sandbox(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let pod_sandbox_id = id.0.clone();
        let stopped = self.call(StopPodSandboxRequest { pod_sandbox_id });
        gone_is_done(stopped.await)
    }

    pub async fn remove_sandbox(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let known = match self.sandbox_status(id).await {
            Ok(known) => known,
            Err(RuntimeError::NotFound { .. }) => return self.parts.remove(id),
            Err(error) => return Err(error),
        };
        self.stop_sandbox(id).await?;
        let pod_sandbox_id = id.0.clone();
        let removed = self.call(RemovePodSandboxRequest { pod_sandbox_id });
        gone_is_done(removed.await)?;
        self.parts.remove(id)?;
        let of_pod = self.sandboxes(Some(&known.config.pod_uid)).await?;
        if of_pod.is_empty() {
            self.groups.clear_pod(&known.config.cgroup).await;
        }
        Ok(())
    }

    /// Of one pod, or of all. Without addresses and namespaces.
    pub async fn sandboxes(&self, uid: Option<&str>) -> Result<Vec<SandboxStatus>, RuntimeError> {
        let filter = uid.map(|uid| PodSandboxFilter {
            label_selector: HashMap::from([(UID_LABEL.to_owned(), uid.to_owned())]),
            ..PodSandboxFilter::default()
        });
        let listed = self.call(ListPodSandboxRequest { filter }).await;
        let items = listed.map_err(failed)?.items;
        let of_pods = items
            .into_iter()
            .filter(|item| item.labels.contains_key(UID_LABEL));
        Ok(of_pods.map(|item| status(item.into(), None)).collect())
    }

    pub async fn sandbox_status(&self, id: &SandboxId) -> Result<SandboxStatus, RuntimeError> {
        let asked = self.call(PodSandboxStatusRequest {
            pod_sandbox_id: id.0.clone(),
            verbose: true,
        });
        let answer = asked
            .await
            .map_err(|status| missing("sandbox", &id.0, status))?;
        let namespace = answer
            .info
            .get("info")
            .and_then(|info| network_namespace(info));
        let found = answer.status.ok_or_else(|| {
            RuntimeError::Failed(format!("the runtime says nothing of the sandbox {id}"))
        })?;
        Ok(status(found, namespace))
    }
}

fn gone_is_done<T>(result: Result<T, crate::grpc::Status>) -> Result<(), RuntimeError> {
    match result {
        Ok(_) => Ok(()),
        Err(status) if status.code == crate::grpc::Code::NOT_FOUND => Ok(()),
        Err(status) => Err(failed(status)),
    }
}

/// What the runtime is asked to run. Pure.
pub fn message(config: &SandboxConfig, cgroup_parent: &str) -> PodSandboxConfig {
    let mut annotations: HashMap<_, _> = config.annotations.clone().into_iter().collect();
    let kept = SandboxConfig {
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ..config.clone()
    };
    let kept = serde_json::to_string(&kept).unwrap_or_default();
    annotations.insert(CONFIG_ANNOTATION.to_owned(), kept);
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: config.pod_name.clone(),
            uid: config.pod_uid.clone(),
            namespace: config.pod_namespace.clone(),
            attempt: config.attempt,
        }),
        hostname: config.hostname.clone(),
        log_directory: config.log_directory.display().to_string(),
        port_mappings: config.ports.iter().map(port).collect(),
        labels: config.labels.clone().into_iter().collect(),
        annotations,
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: cgroup_parent.to_owned(),
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces(config, None)),
                privileged: config.has_privileged,
                seccomp: Some(SecurityProfile {
                    profile_type: PROFILE_RUNTIME_DEFAULT,
                    localhost_ref: String::new(),
                }),
            }),
            sysctls: config.sysctls.clone().into_iter().collect(),
            resources: Some(super::containers::resources(&config.resources, false)),
        }),
    }
}

fn port(mapping: &HostPort) -> PortMapping {
    PortMapping {
        protocol: match mapping.protocol.as_str() {
            "UDP" => 1,
            "SCTP" => 2,
            _ => 0,
        },
        container_port: mapping.container_port,
        host_port: mapping.host_port,
        host_ip: mapping.host_ip.clone(),
    }
}

/// Of a sandbox, or of a container in it that may see another's processes.
pub fn namespaces(config: &SandboxConfig, target: Option<&ContainerId>) -> NamespaceOption {
    let node_or = |is_node: bool, other: i32| if is_node { NAMESPACE_NODE } else { other };
    let alone = if config.shared_pid {
        NAMESPACE_POD
    } else {
        NAMESPACE_CONTAINER
    };
    let ids = |range: &IdRange| IdMapping {
        host_id: range.first,
        container_id: 0,
        length: range.count,
    };
    NamespaceOption {
        network: node_or(config.host_network, NAMESPACE_POD),
        pid: match target {
            Some(_) => NAMESPACE_TARGET,
            None => node_or(config.host_pid, alone),
        },
        ipc: node_or(config.host_ipc, NAMESPACE_POD),
        target_id: target.map(|target| target.0.clone()).unwrap_or_default(),
        userns_options: config.id_range.as_ref().map(|range| UserNamespace {
            mode: NAMESPACE_POD,
            uids: vec![ids(range)],
            gids: vec![ids(range)],
        }),
    }
}

impl From<cri::PodSandbox> for PodSandboxStatus {
    fn from(item: cri::PodSandbox) -> Self {
        Self {
            id: item.id,
            metadata: item.metadata,
            state: item.state,
            created_at: item.created_at,
            network: None,
            linux: None,
            labels: item.labels,
            annotations: item.annotations,
        }
    }
}

pub fn status(found: PodSandboxStatus, network_namespace: Option<PathBuf>) -> SandboxStatus {
    let mut annotations: BTreeMap<_, _> = found.annotations.into_iter().collect();
    let kept = annotations.remove(CONFIG_ANNOTATION);
    let kept = kept.and_then(|kept| serde_json::from_str(&kept).ok());
    let is_ours = kept.is_some();
    let mut config: SandboxConfig = kept.unwrap_or_default();
    config.labels = found.labels.into_iter().collect();
    config.annotations = annotations;
    if let Some(metadata) = found.metadata {
        config.pod_name = metadata.name;
        config.pod_namespace = metadata.namespace;
        config.pod_uid = metadata.uid;
        config.attempt = metadata.attempt;
    }
    let options = found.linux.and_then(|linux| linux.namespaces?.options);
    if let Some(options) = options.filter(|_| !is_ours) {
        config.host_network = options.network == NAMESPACE_NODE;
        config.host_pid = options.pid == NAMESPACE_NODE;
        config.shared_pid = options.pid == NAMESPACE_POD;
        config.host_ipc = options.ipc == NAMESPACE_NODE;
    }
    let is_host = config.host_network;
    let network = found.network.filter(|_| !is_host);
    SandboxStatus {
        id: SandboxId(found.id),
        state: match found.state {
            SANDBOX_READY => SandboxState::Ready,
            _ => SandboxState::NotReady,
        },
        created_at: time(found.created_at).unwrap_or_default(),
        addresses: network.as_ref().map(addresses).unwrap_or_default(),
        network_namespace: network_namespace.filter(|_| !is_host),
        config,
    }
}

fn addresses(network: &PodSandboxNetworkStatus) -> Families<IpAddr> {
    let others = network.additional_ips.iter().map(|other| &other.ip);
    let all = std::iter::once(&network.ip).chain(others);
    all.filter_map(|ip| ip.parse().ok()).collect()
}

/// Where the namespace is pinned, from what containerd and CRI-O tell of a sandbox besides.
pub fn network_namespace(info: &str) -> Option<PathBuf> {
    let info: serde_json::Value = serde_json::from_str(info).ok()?;
    let all = info.pointer("/runtimeSpec/linux/namespaces");
    let all = all.and_then(serde_json::Value::as_array);
    let network = all.and_then(|all| all.iter().find(|one| one["type"] == "network"));
    let path = network.and_then(|network| network["path"].as_str());
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(path));
    }
    let pid = info["pid"].as_u64().filter(|pid| *pid > 0)?;
    Some(PathBuf::from(format!("/proc/{pid}/ns/net")))
}
