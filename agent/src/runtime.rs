//! What the node needs from a container runtime, shaped like the Container Runtime Interface.
//!
//! `Runtime` is the seam: pod workers know this trait and nothing below it. Sandboxes hold a
//! pod's shared namespaces; containers live in a sandbox. All calls may be repeated: stopping
//! what is stopped and removing what is gone are no errors.

mod app_armor;
mod cgroups;
mod choice; // Which one a node has.
mod command; // Run to its end.
pub(crate) use cgroups::Hierarchies;
pub use cgroups::stalls;
pub mod contract;
pub mod cri;
pub mod embedded;
mod image_volume;
mod process;
pub(crate) mod record;
mod seccomp;
mod shim;
mod spec;
mod user;

pub use choice::{Endpoints, open, wipe};
pub use contract::*;

use crate::usage::DiskUse;
use futures::future::BoxFuture;
use std::ffi::OsString;
use std::path::PathBuf;
use tokio::sync::broadcast;

/// The name that a RuntimeClass may call this runtime by; an empty one means it too.
pub const HANDLER: &str = "coracle";

pub type Answer<'a, T> = BoxFuture<'a, Result<T, RuntimeError>>;

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("{what} {id:?} is not found")]
    NotFound { what: &'static str, id: String },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Failed(String),
    #[error("image {0:?} is not present")]
    ImageNotPresent(String),
    /// The registry, or what it sent. The text is fit for an event and a waiting message.
    #[error("{0}")]
    Pull(String),
    #[error("{action}")]
    Io {
        action: String,
        source: std::io::Error,
    },
}

pub trait Runtime: Send + Sync + std::fmt::Debug {
    /// Name and version as `nodeInfo.containerRuntimeVersion` has them: `coracle://0.1.0`.
    fn version(&self) -> String;

    /// `coracle`: what stands before the ids of containers.
    fn name(&self) -> &'static str;

    /// Whether pods can have user namespaces of their own here. Found out once.
    fn has_user_namespaces(&self) -> BoxFuture<'_, bool>;

    /// Makes a group that pods' own are in, below the runtime's, and sets what is said.
    fn set_group<'a>(&'a self, group: &'a str, resources: Resources) -> Answer<'a, ()>;

    /// Empty when the runtime does not tell.
    fn handlers(&self) -> BoxFuture<'_, Vec<Handler>>;

    /// Whether `supplementalGroupsPolicy: Strict` can be had.
    fn has_strict_groups(&self) -> bool {
        true
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(std::future::ready(Health::default()))
    }

    /// Sandboxes come with their network and its address, or are given them by the agent.
    fn makes_networks(&self) -> bool {
        false
    }

    /// For a runtime that makes networks: what the node's addresses are.
    fn use_pod_cidrs<'a>(&'a self, _cidrs: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes the namespaces of a pod. The network namespace is empty but for `lo`, which is down.
    fn run_sandbox(&self, config: SandboxConfig) -> Answer<'_, SandboxId>;
    /// Kills all that runs in it; its namespaces are let go, its record stays.
    fn stop_sandbox<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()>;
    /// Stops it and removes its containers and its record. The log files are the caller's.
    fn remove_sandbox<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()>;
    fn list_sandboxes(&self) -> Answer<'_, Vec<SandboxStatus>>;
    fn sandbox_status<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, SandboxStatus> {
        Box::pin(async move {
            let all = self.list_sandboxes().await?;
            let found = all.into_iter().find(|sandbox| sandbox.id == *id);
            found.ok_or_else(|| RuntimeError::NotFound {
                what: "sandbox",
                id: id.0.clone(),
            })
        })
    }

    /// Sandboxes have a process each, and end with it.
    fn has_sandbox_processes(&self) -> bool {
        false
    }
    /// All of one pod, with nothing left out.
    fn of_pod<'a>(&'a self, uid: &'a str) -> Answer<'a, PodState> {
        Box::pin(async move {
            let mut sandboxes = self.list_sandboxes().await?;
            sandboxes.retain(|sandbox| sandbox.config.pod_uid == uid);
            let mut containers = self.list_containers().await?;
            let is_known = |id: &SandboxId| sandboxes.iter().any(|sandbox| sandbox.id == *id);
            containers.retain(|container| is_known(&container.sandbox));
            Ok((sandboxes, containers))
        })
    }

    /// The image must be present. The log directory must exist.
    fn create_container<'a>(
        &'a self,
        sandbox: &'a SandboxId,
        config: ContainerConfig,
    ) -> Answer<'a, ContainerId>;
    /// Ends when the process was executed, or with what prevented it: the container is then
    /// `Exited` with code 128 and the reason `StartError`.
    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()>;
    /// Sends the stop signal, waits for the grace, kills the rest, and ends when it has exited.
    /// A grace of 0 or less kills at once.
    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace_seconds: i64) -> Answer<'a, ()>;
    /// Kills it if it runs, and forgets it. The log file stays.
    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()>;
    fn list_containers(&self) -> Answer<'_, Vec<ContainerStatus>>;
    fn container_status<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ContainerStatus>;
    /// Changes limits of what runs. What is zero stays as it is.
    fn update_container<'a>(&'a self, id: &'a ContainerId, to: Resources) -> Answer<'a, ()>;
    /// The same for all of a pod.
    fn update_sandbox<'a>(&'a self, id: &'a SandboxId, to: Resources) -> Answer<'a, ()>;
    /// The limits that hold now.
    fn container_limits<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Limits>;
    fn sandbox_limits<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Limits>;
    /// What the container uses now; None when it does not run.
    fn container_usage<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Option<Usage>>;
    /// What all of the pod uses now, by its group; None when it has none.
    fn sandbox_usage<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Usage>>;
    /// What all pods use together; None when the host does not count it.
    fn total_usage(&self) -> Answer<'_, Option<TotalUsage>>;
    /// What the container has written to its own layer. A walk: not to be asked often.
    fn container_disk<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, DiskUse>;
    /// Holds all pods together to this. Limits that the host cannot set are left out.
    fn limit_total(&self, resources: Resources) -> Answer<'_, ()>;
    /// Where writable layers are.
    fn containers_directory(&self) -> PathBuf;
    /// Where images are.
    fn images_directory(&self) -> PathBuf;
    /// Asks the shim to open the log file again, after a rotation renamed it.
    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()>;
    fn exec<'a>(&'a self, id: &'a ContainerId, config: ExecConfig) -> Answer<'a, ExecStreams>;
    /// Runs a command to its end: its exit code, and the first of both outputs. Letting go of it
    /// ends the command.
    fn exec_sync<'a>(
        &'a self,
        id: &'a ContainerId,
        command: Vec<String>,
    ) -> Answer<'a, (i32, Vec<u8>)> {
        Box::pin(async move {
            let streams = self.exec(id, command::config(command)).await?;
            command::output(streams).await
        })
    }
    /// The streams of the container's own process, from now on. `exit` ends with 0 when the
    /// container does, whatever its own code; letting go does nothing to it but end an input that
    /// ends with the first who feeds it.
    fn attach<'a>(&'a self, id: &'a ContainerId, config: AttachConfig) -> Answer<'a, ExecStreams>;

    /// The image of a name, an id (`sha256:..`) or a digest reference, when it is present.
    fn image_status<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageInfo>>;
    /// Pulls whether or not it is present. Calls for one image at the same time share one pull.
    fn pull_image<'a>(
        &'a self,
        image: &'a str,
        credentials: &'a [RegistryCredentials],
    ) -> Answer<'a, ImageInfo>;
    fn list_images(&self) -> Answer<'_, Vec<ImageInfo>>;
    fn remove_image<'a>(&'a self, image: &'a str) -> Answer<'a, ()>;

    /// Containers that started or ended since this call. A receiver that lags lists again.
    fn events(&self) -> broadcast::Receiver<ContainerEvent>;
}

/// `coracle shim`: runs in a process of its own, before any thread exists in it.
pub fn shim_main(arguments: Vec<OsString>) -> i32 {
    shim::main(&arguments)
}
