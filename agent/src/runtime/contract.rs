//! The words of the `Runtime` trait: what a caller asks for and what it is told.

use crate::families::Families;
use coracle_api::policy_feed::NamedPort;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// 64 hexadecimal digits.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct SandboxId(pub String);

/// 64 hexadecimal digits. In a pod's status the runtime's name is before it: `coracle://<id>`.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct ContainerId(pub String);

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct SandboxConfig {
    pub pod_name: String,
    pub pod_namespace: String,
    pub pod_uid: String,
    pub attempt: u32,
    /// The pod's host name; not set when the pod is on the host's network.
    pub hostname: String,
    pub host_network: bool,
    pub host_pid: bool,
    /// All containers are in one PID namespace, whose first process is the sandbox's.
    pub shared_pid: bool,
    pub host_ipc: bool,
    /// A user namespace of the pod's own, with these ids of the node as 0 and on.
    pub id_range: Option<IdRange>,
    pub sysctls: BTreeMap<String, String>,
    /// The pod's cgroup below the runtime's own root, such as `podd6f3..`. It is made with
    /// `resources` in it and removed with the sandbox.
    pub cgroup: String,
    pub resources: Resources,
    /// Bytes that /dev/shm may hold; 0 stands for 64 MiB.
    pub shm_bytes: u64,
    /// Of the RuntimeClass; empty for the usual one.
    pub handler: String,
    /// A container of it is privileged.
    pub has_privileged: bool,
    /// What is below it is the containers' logs.
    pub log_directory: PathBuf,
    /// For a runtime that makes the network.
    pub ports: Vec<HostPort>,
    /// Of containers that run as long as the pod does.
    pub named_ports: Vec<NamedPort>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// A port of the node that leads to one of the pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct HostPort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    pub container_port: i32,
    pub host_port: i32,
    pub host_ip: String,
}

/// A kind of sandbox that RuntimeClasses name; the one without a name is the usual one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handler {
    pub name: String,
    pub has_recursive_read_only: bool,
    pub has_user_namespaces: bool,
}

/// Why the runtime, and the network that it makes, are not ready; nothing when they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    pub runtime: Option<String>,
    pub network: Option<String>,
}

/// What there is of one pod.
pub type PodState = (Vec<SandboxStatus>, Vec<ContainerStatus>);

/// Ids of users and of groups.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct IdRange {
    pub first: u32,
    pub count: u32,
}

impl IdRange {
    /// The node's id for one of the container's; None for one that the container has not.
    pub fn map(self, id: u32) -> Option<u32> {
        if id >= self.count {
            return None;
        }
        self.first.checked_add(id)
    }
}

impl SandboxConfig {
    /// As `IdRange::map`; without a range all ids are the node's own.
    pub fn id_on_node(&self, id: u32) -> Option<u32> {
        match self.id_range {
            Some(range) => range.map(id),
            None => Some(id),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SandboxState {
    Ready,
    /// Stopped, or its namespaces are gone: after a reboot, for example.
    NotReady,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SandboxStatus {
    pub id: SandboxId,
    pub config: SandboxConfig,
    pub state: SandboxState,
    pub created_at: Timestamp,
    /// Where the network namespace is pinned; None on the host's network. Lists may leave it out.
    pub network_namespace: Option<PathBuf>,
    /// Given by a runtime that makes the network. Lists may leave them out.
    pub addresses: Families<std::net::IpAddr>,
}

/// Zero means: not said. No value of these ever makes a start fail.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Resources {
    pub cpu_shares: u64,
    pub cpu_quota_us: i64,
    pub cpu_period_us: u64,
    pub memory_limit_bytes: i64,
    pub pids_limit: i64,
    /// Size of pages as control groups write it (`2MB`), bytes. Sizes that are not here get none.
    pub huge_page_limits: Vec<(String, u64)>,
    /// Tried, and left as it is when the kernel refuses.
    pub oom_score_adj: Option<i32>,
}

impl Resources {
    /// These, where they say something, over what was.
    pub fn over(&self, before: &Self) -> Self {
        let signed = |new: i64, old: i64| if new == 0 { old } else { new };
        let unsigned = |new: u64, old: u64| if new == 0 { old } else { new };
        Self {
            cpu_shares: unsigned(self.cpu_shares, before.cpu_shares),
            cpu_quota_us: signed(self.cpu_quota_us, before.cpu_quota_us),
            cpu_period_us: unsigned(self.cpu_period_us, before.cpu_period_us),
            memory_limit_bytes: signed(self.memory_limit_bytes, before.memory_limit_bytes),
            pids_limit: signed(self.pids_limit, before.pids_limit),
            huge_page_limits: match self.huge_page_limits.is_empty() {
                true => before.huge_page_limits.clone(),
                false => self.huge_page_limits.clone(),
            },
            oom_score_adj: self.oom_score_adj.or(before.oom_score_adj),
        }
    }
}

/// What is enforced on a container or a pod, and how much memory counts against it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    pub resources: Resources,
    pub memory_usage_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Propagation {
    #[default]
    Private,
    HostToContainer,
    Bidirectional,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Mount {
    pub container_path: PathBuf,
    /// An existing file or directory. Also for /etc/hosts and /etc/resolv.conf.
    pub host_path: PathBuf,
    /// What of the directory `host_path` is shown; empty for all of it. Others may write to that
    /// directory: whatever they do, nothing outside of it is shown.
    pub sub_path: PathBuf,
    pub read_only: bool,
    /// With all that is mounted below it.
    pub recursive_read_only: bool,
    pub propagation: Propagation,
    /// Instead of `host_path`: what an image holds, by the image's id. Read only, and nothing in
    /// it is executed.
    pub image: String,
}

/// A device of the node that a container is given.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Device {
    pub container_path: PathBuf,
    pub host_path: PathBuf,
    pub read_only: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Security {
    /// Over the image's USER.
    pub run_as_user: Option<i64>,
    /// Over the group that goes with the user.
    pub run_as_group: Option<i64>,
    pub supplemental_groups: Vec<i64>,
    /// No groups but those: the image's /etc/group adds none.
    pub strict_groups: bool,
    pub privileged: bool,
    pub read_only_root_filesystem: bool,
    pub allow_privilege_escalation: bool,
    /// With or without `CAP_`, or `ALL`.
    pub add_capabilities: Vec<String>,
    pub drop_capabilities: Vec<String>,
    /// Shows all of /proc: no masked and read-only paths.
    pub unmasked_proc: bool,
    /// Without effect on the privileged.
    pub seccomp: Seccomp,
    pub app_armor: AppArmor,
}

/// Which profile of AppArmor confines a container, on a host that has AppArmor.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum AppArmor {
    /// The runtime's own where it can be had.
    #[default]
    Unsaid,
    Unconfined,
    RuntimeDefault,
    /// One that the host has loaded.
    Localhost(String),
}

/// Which system calls a container may make.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Seccomp {
    #[default]
    Unconfined,
    RuntimeDefault,
    /// A file of this host, in the format of the OCI or of Docker.
    Localhost(PathBuf),
}

/// What to run. `command` stands over the image's entrypoint and, when it is given, drops the
/// image's command; `args` stands over the image's command. The runtime merges.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ContainerConfig {
    pub name: String,
    pub attempt: u32,
    /// Name, digest reference or id of an image that is present.
    pub image: String,
    pub command: Vec<String>,
    pub args: Vec<String>,
    /// Empty: the image's, else `/`.
    pub working_dir: String,
    /// Set over the image's, in this order.
    pub env: Vec<(String, String)>,
    pub mounts: Vec<Mount>,
    pub devices: Vec<Device>,
    /// The file the log goes to, in CRI format.
    pub log_path: PathBuf,
    pub tty: bool,
    /// Keep standard input open; without it the process reads /dev/null.
    pub stdin: bool,
    /// Standard input ends with the first who is attached to it.
    pub stdin_once: bool,
    pub resources: Resources,
    pub security: Security,
    /// A running container of the sandbox whose processes this one sees, and may signal.
    pub pid_namespace_of: Option<ContainerId>,
    /// Signal name (`SIGUSR1`) or number over the image's STOPSIGNAL; empty for the image's.
    pub stop_signal: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ContainerState {
    Created,
    Running,
    Exited,
    /// Neither its shim nor its end is known.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ContainerStatus {
    pub id: ContainerId,
    pub sandbox: SandboxId,
    pub config: ContainerConfig,
    pub state: ContainerState,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Of an exited container: the process's code, or 128 + the signal that ended it.
    pub exit_code: Option<i32>,
    /// Of an exited container: `Completed`, `Error`, `OOMKilled`, `StartError` or
    /// `ContainerStatusUnknown`.
    pub reason: String,
    pub message: String,
    /// Id of the image: `sha256:..`.
    pub image_id: String,
    pub pid: Option<i32>,
    /// Whom its first process ran as at first.
    pub user: Option<ContainerUser>,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ContainerUser {
    pub uid: u32,
    pub gid: u32,
    /// The primary one too.
    pub groups: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub cpu_ns: u64,
    pub memory_usage_bytes: u64,
    /// Without what is cached of files and was not used lately.
    pub memory_working_set_bytes: u64,
    pub memory_rss_bytes: u64,
    pub page_faults: u64,
    pub major_page_faults: u64,
    /// Threads count too.
    pub process_count: u64,
    /// None where the host does not count it.
    pub swap_bytes: Option<u64>,
    /// None where the host does not measure it.
    pub stalls: Option<Stalls>,
}

/// How long tasks waited for want of a resource, as the kernel's pressure files say it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    pub cpu: Stall,
    pub memory: Stall,
    pub io: Stall,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    /// Some of the tasks waited.
    pub some: Waited,
    /// All of them did.
    pub full: Waited,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waited {
    pub total_us: u64,
    /// Over 10, 60 and 300 seconds.
    pub percent: [f64; 3],
}

/// What all pods use together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TotalUsage {
    pub usage: Usage,
    /// None when they are not held to one.
    pub memory_limit_bytes: Option<u64>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EventKind {
    Started,
    Exited { exit_code: i32, reason: String },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerEvent {
    pub container: ContainerId,
    pub sandbox: SandboxId,
    pub pod_uid: String,
    pub kind: EventKind,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecConfig {
    pub command: Vec<String>,
    pub tty: bool,
    pub stdin: bool,
    pub stdout: bool,
    /// Not with a terminal, which has one output.
    pub stderr: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TerminalSize {
    pub width: u16,
    pub height: u16,
}

/// Which streams of a running container to be attached to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AttachConfig {
    /// The container has a terminal.
    pub tty: bool,
    pub stdin: bool,
    pub stdout: bool,
    /// Not with a terminal, which has one output.
    pub stderr: bool,
}

/// A running command. Dropping all of it hangs up: the command sees its input end, its output
/// closed and, on a terminal, SIGHUP.
pub struct ExecStreams {
    /// Shutting it down or dropping it ends the command's input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub resize: mpsc::Sender<TerminalSize>,
    /// The exit code, 128 + signal for a killed one. Ends when the process has, even while a
    /// grandchild still holds the outputs.
    pub exit: futures::future::BoxFuture<'static, Result<i32, super::RuntimeError>>,
}

impl fmt::Debug for ExecStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecStreams").finish_non_exhaustive()
    }
}

pub use crate::images::{ImageInfo, RegistryCredentials};

#[cfg(test)]
mod tests;
