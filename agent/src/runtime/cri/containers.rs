//! Containers: what is asked of the runtime, and what it says of them.

use super::super::contract::{ContainerConfig, ContainerStatus, ContainerUser, Mount};
use super::super::{RuntimeError, contract::*};
use super::messages::{self as cri, *};
use super::sandboxes::{self, UID_LABEL};
use super::{CALL_MAX, CREATE_MAX, Inner, failed, images, missing, security, time};
use crate::grpc::Code;
use futures::StreamExt;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

/// A container's status does not name its sandbox.
pub const SANDBOX_ANNOTATION: &str = "coracle/sandbox-id";
/// Statuses asked for at a time.
const STATUSES_AT_ONCE: usize = 8;
/// The names of `Signal`, from number 1 on, without those of real time.
const SIGNALS: [&str; 34] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];
const SIGRTMIN: i32 = 35;
const SIGRTMAX: i32 = 65;

impl Inner {
    pub async fn create_container(
        &self,
        sandbox: &SandboxId,
        mut config: ContainerConfig,
    ) -> Result<ContainerId, RuntimeError> {
        let pod = self.sandbox_status(sandbox).await?.config;
        let image = self.image(&config.image).await?;
        let image = image.ok_or_else(|| RuntimeError::ImageNotPresent(config.image.clone()))?;
        self.parts.bind(sandbox, &mut config)?;
        let target = config.pid_namespace_of.as_ref();
        let namespaces = sandboxes::namespaces(&pod, target);
        let strict = self.has_strict_groups;
        let security = security::context(&config.security, &image, namespaces, strict)?;
        let resources = resources(&config.resources, self.groups.limits_swap());
        let mut pod = sandboxes::message(&pod, &self.groups.parent(&pod.cgroup));
        let mut message = message(&config);
        message.log_path = split_log(&config, &mut pod);
        let owner = (SANDBOX_ANNOTATION.to_owned(), sandbox.0.clone());
        message.annotations.extend([owner]);
        message.linux = Some(LinuxContainerConfig {
            resources: Some(resources),
            security_context: Some(security),
        });
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.0.clone(),
            config: Some(message),
            sandbox_config: Some(pod),
        };
        let created = self.call_within(request, CREATE_MAX).await;
        Ok(ContainerId(created.map_err(failed)?.container_id))
    }

    pub async fn start_container(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let container_id = id.0.clone();
        let started = self.call_within(StartContainerRequest { container_id }, CREATE_MAX);
        let started = started.await;
        started.map_err(|status| missing("container", &id.0, status))?;
        Ok(())
    }

    pub async fn stop_container(
        &self,
        id: &ContainerId,
        grace_seconds: i64,
    ) -> Result<(), RuntimeError> {
        let timeout = grace_seconds.max(0);
        let request = StopContainerRequest {
            container_id: id.0.clone(),
            timeout,
        };
        let grace = Duration::from_secs(u64::try_from(timeout).unwrap_or(0));
        match self
            .call_within(request, grace.saturating_add(CALL_MAX))
            .await
        {
            Err(status) if status.code != Code::NOT_FOUND => Err(failed(status)),
            _ => Ok(()),
        }
    }

    pub async fn remove_container(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let container_id = id.0.clone();
        match self.call(RemoveContainerRequest { container_id }).await {
            Err(status) if status.code != Code::NOT_FOUND => Err(failed(status)),
            _ => Ok(()),
        }
    }

    /// Of one pod, or of all pods, as they are listed: without their ends.
    pub async fn listed(&self, uid: Option<&str>) -> Result<Vec<Container>, RuntimeError> {
        let filter = uid.map(|uid| ContainerFilter {
            label_selector: HashMap::from([(UID_LABEL.to_owned(), uid.to_owned())]),
            ..ContainerFilter::default()
        });
        let listed = self.call(ListContainersRequest { filter }).await;
        let mut containers = listed.map_err(failed)?.containers;
        containers.retain(|container| container.labels.contains_key(UID_LABEL));
        Ok(containers)
    }

    pub async fn containers(
        &self,
        uid: Option<&str>,
    ) -> Result<Vec<ContainerStatus>, RuntimeError> {
        let listed = self.listed(uid).await?;
        let asked = futures::stream::iter(listed).map(|container| async move {
            let sandbox = SandboxId(container.pod_sandbox_id);
            self.asked(&ContainerId(container.id), Some(sandbox)).await
        });
        let all: Vec<_> = asked.buffer_unordered(STATUSES_AT_ONCE).collect().await;
        let kept = |status: Result<ContainerStatus, RuntimeError>| match status {
            // Removed since it was listed.
            Err(RuntimeError::NotFound { .. }) => None,
            other => Some(other),
        };
        all.into_iter().filter_map(kept).collect()
    }

    pub async fn container_status(
        &self,
        id: &ContainerId,
    ) -> Result<ContainerStatus, RuntimeError> {
        self.asked(id, None).await
    }

    async fn asked(
        &self,
        id: &ContainerId,
        sandbox: Option<SandboxId>,
    ) -> Result<ContainerStatus, RuntimeError> {
        let container_id = id.0.clone();
        let asked = self.call(ContainerStatusRequest { container_id }).await;
        let answer = asked.map_err(|status| missing("container", &id.0, status))?;
        let mut found = answer.status.ok_or_else(|| {
            RuntimeError::Failed(format!("the runtime says nothing of the container {id}"))
        })?;
        let noted = found.annotations.remove(SANDBOX_ANNOTATION).map(SandboxId);
        let sandbox = match sandbox.or(noted) {
            Some(sandbox) => sandbox,
            None => self.sandbox_of(id).await?,
        };
        Ok(status(found, sandbox))
    }

    async fn sandbox_of(&self, id: &ContainerId) -> Result<SandboxId, RuntimeError> {
        let filter = ContainerFilter {
            id: id.0.clone(),
            ..ContainerFilter::default()
        };
        let filter = Some(filter);
        let listed = self.call(ListContainersRequest { filter }).await;
        let found = listed.map_err(failed)?.containers.into_iter().next();
        let found = found.ok_or_else(|| RuntimeError::NotFound {
            what: "container",
            id: id.0.clone(),
        })?;
        Ok(SandboxId(found.pod_sandbox_id))
    }
}

/// All but the log, the annotation of its sandbox, and what is the kernel's. Pure.
pub fn message(config: &ContainerConfig) -> cri::ContainerConfig {
    cri::ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: config.name.clone(),
            attempt: config.attempt,
        }),
        image: Some(images::spec(config.image.clone())),
        command: config.command.clone(),
        args: config.args.clone(),
        working_dir: config.working_dir.clone(),
        envs: config
            .env
            .iter()
            .map(|(key, value)| KeyValue {
                key: key.clone(),
                value: value.clone().into_bytes(),
            })
            .collect(),
        mounts: config.mounts.iter().map(mount).collect(),
        devices: config.devices.iter().map(device).collect(),
        labels: config.labels.clone().into_iter().collect(),
        annotations: config.annotations.clone().into_iter().collect(),
        log_path: String::new(),
        stdin: config.stdin,
        stdin_once: config.stdin_once,
        tty: config.tty,
        linux: None,
        stop_signal: signal(&config.stop_signal),
    }
}

fn device(device: &super::super::contract::Device) -> cri::Device {
    cri::Device {
        container_path: device.container_path.display().to_string(),
        host_path: device.host_path.display().to_string(),
        permissions: if device.read_only { "r" } else { "mrw" }.to_owned(),
    }
}

fn mount(mount: &Mount) -> cri::Mount {
    let image = Some(&mount.image).filter(|image| !image.is_empty());
    cri::Mount {
        container_path: mount.container_path.display().to_string(),
        host_path: mount.host_path.display().to_string(),
        readonly: mount.read_only,
        propagation: match mount.propagation {
            Propagation::Private => 0,
            Propagation::HostToContainer => 1,
            Propagation::Bidirectional => 2,
        },
        recursive_read_only: mount.recursive_read_only,
        image_sub_path: match image {
            Some(_) => mount.sub_path.display().to_string(),
            None => String::new(),
        },
        image: image.cloned().map(images::spec),
        ..cri::Mount::default()
    }
}

/// Zero, which is the image's own, for what is no name of a signal.
fn signal(name: &str) -> i32 {
    let at = SIGNALS.iter().position(|known| *known == name);
    if let Some(number) = at.and_then(|at| i32::try_from(at + 1).ok()) {
        return number;
    }
    let offset = |rest: &str, sign: char| match rest {
        "" => Some(0),
        rest => rest.strip_prefix(sign)?.parse::<i32>().ok(),
    };
    let from_min = name
        .strip_prefix("SIGRTMIN")
        .and_then(|rest| offset(rest, '+'));
    let from_max = name
        .strip_prefix("SIGRTMAX")
        .and_then(|rest| offset(rest, '-'));
    let number = match (from_min, from_max) {
        (Some(offset), _) => SIGRTMIN.saturating_add(offset),
        (_, Some(offset)) => SIGRTMAX.saturating_sub(offset),
        _ => 0,
    };
    if (SIGRTMIN..=SIGRTMAX).contains(&number) {
        number
    } else {
        0
    }
}

/// What is zero is not said. `limits_swap` holds memory and swap together to the memory's limit.
pub fn resources(of: &Resources, limits_swap: bool) -> LinuxContainerResources {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    LinuxContainerResources {
        cpu_period: signed(of.cpu_period_us),
        cpu_quota: of.cpu_quota_us,
        cpu_shares: signed(of.cpu_shares),
        memory_limit_in_bytes: of.memory_limit_bytes,
        oom_score_adj: of.oom_score_adj.map_or(0, i64::from),
        memory_swap_limit_in_bytes: if limits_swap {
            of.memory_limit_bytes
        } else {
            0
        },
        hugepage_limits: of
            .huge_page_limits
            .iter()
            .map(|(size, bytes)| HugepageLimit {
                page_size: size.clone(),
                limit: *bytes,
            })
            .collect(),
    }
}

pub fn resources_of(told: &LinuxContainerResources) -> Resources {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    Resources {
        cpu_shares: unsigned(told.cpu_shares),
        cpu_quota_us: told.cpu_quota,
        cpu_period_us: unsigned(told.cpu_period),
        memory_limit_bytes: told.memory_limit_in_bytes,
        oom_score_adj: i32::try_from(told.oom_score_adj).ok(),
        ..Resources::default()
    }
}

/// The interface has the directory of a pod's logs, and the rest of the path with the container.
fn split_log(config: &ContainerConfig, pod: &mut PodSandboxConfig) -> String {
    let of_pod = config.log_path.parent().and_then(|own| own.parent());
    let of_pod = of_pod.map_or_else(PathBuf::new, PathBuf::from);
    pod.log_directory = of_pod.display().to_string();
    let rest = config.log_path.strip_prefix(&of_pod);
    rest.map_or_else(|_| String::new(), |rest| rest.display().to_string())
}

pub fn status(found: cri::ContainerStatus, sandbox: SandboxId) -> ContainerStatus {
    let metadata = found.metadata.unwrap_or_default();
    let is_ended = found.state == CONTAINER_EXITED;
    let resources = found.resources.and_then(|resources| resources.linux);
    let config = ContainerConfig {
        name: metadata.name,
        attempt: metadata.attempt,
        image: found.image.map(|image| image.image).unwrap_or_default(),
        log_path: PathBuf::from(found.log_path),
        resources: resources.as_ref().map(resources_of).unwrap_or_default(),
        labels: found.labels.into_iter().collect(),
        annotations: found.annotations.into_iter().collect::<BTreeMap<_, _>>(),
        ..ContainerConfig::default()
    };
    let user = found.user.and_then(|user| user.linux);
    ContainerStatus {
        id: ContainerId(found.id),
        sandbox,
        config,
        state: match found.state {
            CONTAINER_CREATED => ContainerState::Created,
            CONTAINER_RUNNING => ContainerState::Running,
            CONTAINER_EXITED => ContainerState::Exited,
            _ => ContainerState::Unknown,
        },
        created_at: time(found.created_at).unwrap_or_default(),
        started_at: time(found.started_at),
        finished_at: time(found.finished_at).filter(|_| is_ended),
        exit_code: is_ended.then_some(found.exit_code),
        reason: found.reason,
        message: found.message,
        image_id: found.image_ref,
        pid: None,
        user: user.as_ref().and_then(user_of),
    }
}

fn user_of(told: &LinuxContainerUser) -> Option<ContainerUser> {
    let groups = told.supplemental_groups.iter();
    Some(ContainerUser {
        uid: u32::try_from(told.uid).ok()?,
        gid: u32::try_from(told.gid).ok()?,
        groups: groups
            .filter_map(|group| u32::try_from(*group).ok())
            .collect(),
    })
}
