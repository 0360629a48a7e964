//! A container runtime beside the agent, spoken to by the Container Runtime Interface, version 1:
//! containerd, CRI-O.
//!
//! The runtime knows everything, and nothing is remembered here: an agent or a runtime that starts
//! anew goes on with what there is. The pods' network is the runtime's, by CNI; their control
//! groups are made here, so that limits and numbers are the same as with the runtime that is
//! built in. What the runtime has and no cluster asked for is not touched.

mod containers; // Asked for and told of. Pure but for the calls.
mod events; // Who started and ended.
mod groups; // Names of control groups, for either driver.
mod images;
mod limits; // Changed and read.
mod messages; // What is on the wire.
mod parts; // Of volumes, bound where the runtime finds them.
mod sandboxes;
mod security; // Pure.
mod streams; // Of commands and of containers.
#[cfg(test)]
pub(crate) mod testing; // One in this process.
mod usage; // What is used, of memory and of disks.

use super::contract::*;
use super::contract::{ContainerConfig, ContainerStatus};
use super::{Answer, Runtime, RuntimeError, embedded};
use crate::grpc::{Channel, Code, Endpoint, Status};
use crate::usage::DiskUse;
use coracle_client::clock::{Clock, Instant};
use futures::future::BoxFuture;
use groups::Groups;
use jiff::Timestamp;
use messages::*;
use nix::fcntl::Flock;
use parking_lot::Mutex;
use parts::Parts;
use sandboxes::CONFIG_ANNOTATION;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};
use usage::Disks;

/// Upstream's bounds: of a message, of a call, and of one that makes something.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const CALL_MAX: Duration = Duration::from_secs(2 * 60);
const CREATE_MAX: Duration = Duration::from_secs(4 * 60);
/// The runtime ends pulls that get nowhere.
const PULL_MAX: Duration = Duration::from_secs(60 * 60);
/// For a runtime that starts at the same time, and how often it is looked for.
pub const START_MAX: Duration = Duration::from_secs(60);
const START_RETRY: Duration = Duration::from_millis(500);
/// Upstream's: the runtime is down when it has said nothing for so long.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// A receiver that is this many events behind lists again.
const EVENTS_MAX: usize = 256;

#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's data directory.
    pub data_dir: PathBuf,
    pub runtime: Endpoint,
    /// Often the same.
    pub images: Endpoint,
    /// How long to wait for a runtime that is not there.
    pub patience: Duration,
}

/// A cheap handle; the last one to go ends what follows the runtime.
#[derive(Clone, Debug)]
pub struct CriRuntime(
    Arc<Inner>,
    #[expect(dead_code, reason = "is let go of")] Arc<Life>,
);

#[derive(Debug)]
struct Life {
    _stop: DropGuard,
    _lock: Flock<File>,
}

#[derive(Debug)]
struct Inner {
    runtime: Channel,
    images: Channel,
    /// `containerd`, lent for ever: one a process.
    name: &'static str,
    version: String,
    handlers: Vec<Handler>,
    has_strict_groups: bool,
    groups: Groups,
    parts: Parts,
    disks: Disks,
    events: broadcast::Sender<ContainerEvent>,
    heard_at: Mutex<Instant>,
    clock: Clock,
}

impl CriRuntime {
    /// Waits a while for the runtime. Needs a tokio runtime.
    pub async fn open(config: Config) -> Result<Self, RuntimeError> {
        let clock = Clock::system();
        let lock = embedded::lock(&config.data_dir)?;
        let runtime = Channel::new(config.runtime.clone(), MESSAGE_BYTES_MAX);
        let images = Channel::new(config.images.clone(), MESSAGE_BYTES_MAX);
        let met = meet(&runtime, &images, &clock, config.patience).await?;
        let (version, told, is_systemd, file_systems) = met;
        let stop = CancellationToken::new();
        let inner = Arc::new(Inner {
            name: String::leak(version.runtime_name.clone()),
            version: version.runtime_version,
            handlers: told.runtime_handlers.iter().map(handler).collect(),
            has_strict_groups: told
                .features
                .is_some_and(|features| features.supplemental_groups_policy),
            groups: Groups::open(&config.data_dir, is_systemd)?,
            parts: Parts::new(config.data_dir.join("parts")),
            disks: usage::disks(&file_systems, &config.data_dir),
            events: broadcast::Sender::new(EVENTS_MAX),
            heard_at: Mutex::new(clock.monotonic()),
            clock,
            runtime,
            images,
        });
        let seen = inner.begin(config.patience).await?;
        tokio::spawn(events::follow(inner.clone(), seen, stop.clone()));
        let life = Life {
            _stop: stop.drop_guard(),
            _lock: lock,
        };
        Ok(Self(inner, Arc::new(life)))
    }

    /// Ends and removes what agents of ours made, and the control groups.
    pub async fn wipe(&self) -> Result<(), RuntimeError> {
        let made = self.0.made_here().await?;
        for id in made {
            self.0.remove_sandbox(&id).await?;
        }
        self.0.groups.clear().await;
        Ok(())
    }
}

/// What a runtime says at the beginning.
type Met = (VersionResponse, StatusResponse, bool, ImageFsInfoResponse);

/// Asks until the runtime answers, or does not speak this at all. One that is just starting anew
/// may go between two questions.
async fn meet(
    runtime: &Channel,
    images: &Channel,
    clock: &Clock,
    patience: Duration,
) -> Result<Met, RuntimeError> {
    let begun = clock.monotonic();
    let mut is_told = false;
    loop {
        let status = match ask(runtime, images).await {
            Ok(met) => return Ok(met),
            Err(status) => status,
        };
        if status.code != Code::UNAVAILABLE || begun.elapsed() > patience {
            return Err(unfit(runtime, &status));
        }
        if !is_told {
            is_told = true;
            tracing::info!(endpoint = %runtime.endpoint(), %status, "waits for the runtime");
        }
        tokio::time::sleep(START_RETRY).await;
    }
}

async fn ask(runtime: &Channel, images: &Channel) -> Result<Met, Status> {
    let request = VersionRequest {
        version: "0.1.0".to_owned(),
    };
    let version = runtime
        .unary(VersionRequest::PATH, &request, CALL_MAX)
        .await?;
    // A runtime without images would be found out by the first pod.
    let request = ListImagesRequest {};
    let _: ListImagesResponse = images
        .unary(ListImagesRequest::PATH, &request, CALL_MAX)
        .await?;
    let request = StatusRequest { verbose: false };
    let status = runtime
        .unary(StatusRequest::PATH, &request, CALL_MAX)
        .await?;
    let file_systems = usage::file_systems(images).await?;
    Ok((version, status, is_systemd(runtime).await?, file_systems))
}

fn unfit(channel: &Channel, status: &Status) -> RuntimeError {
    let endpoint = channel.endpoint();
    RuntimeError::Failed(match status.code {
        Code::UNIMPLEMENTED => format!(
            "{endpoint} does not speak version 1 of the Container Runtime Interface: {status}"
        ),
        _ => format!("{endpoint} cannot be used: {status}"),
    })
}

/// Who does not say so makes groups as this process does, in the file system.
async fn is_systemd(runtime: &Channel) -> Result<bool, Status> {
    let request = RuntimeConfigRequest {};
    let asked = runtime.unary(RuntimeConfigRequest::PATH, &request, CALL_MAX);
    let answered: Result<RuntimeConfigResponse, Status> = asked.await;
    match answered {
        Ok(answer) => Ok(answer
            .linux
            .is_some_and(|linux| linux.cgroup_driver == DRIVER_SYSTEMD)),
        Err(status) if status.code == Code::UNIMPLEMENTED => Ok(false),
        Err(status) => Err(status),
    }
}

fn handler(told: &RuntimeHandler) -> Handler {
    let features = told.features.clone().unwrap_or_default();
    Handler {
        name: told.name.clone(),
        has_recursive_read_only: features.recursive_read_only_mounts,
        has_user_namespaces: features.user_namespaces,
    }
}

fn failed(status: Status) -> RuntimeError {
    RuntimeError::Failed(status.to_string())
}

fn missing(what: &'static str, id: &str, status: Status) -> RuntimeError {
    match status.code {
        Code::NOT_FOUND => RuntimeError::NotFound {
            what,
            id: id.to_owned(),
        },
        _ => failed(status),
    }
}

/// Zero stands for never.
fn time(nanoseconds: i64) -> Option<Timestamp> {
    let time = (nanoseconds > 0).then_some(i128::from(nanoseconds));
    time.and_then(|time| Timestamp::from_nanosecond(time).ok())
}

impl Inner {
    /// Finds what there is. A runtime that goes away between two questions is waited for.
    async fn begin(&self, patience: Duration) -> Result<events::Seen, RuntimeError> {
        let begun = self.clock.monotonic();
        loop {
            let error = match self.look_around().await {
                Ok(seen) => return Ok(seen),
                Err(error) => error,
            };
            if begun.elapsed() > patience {
                return Err(error);
            }
            tracing::info!(%error, "asks the runtime again");
            tokio::time::sleep(START_RETRY).await;
        }
    }

    async fn look_around(&self) -> Result<events::Seen, RuntimeError> {
        let sandboxes = self.sandboxes(None).await?;
        self.parts.sweep(sandboxes.iter().map(|one| &one.id))?;
        events::all_alive(self).await
    }

    async fn call<Q: Call>(&self, request: Q) -> Result<Q::Answer, Status> {
        self.call_within(request, CALL_MAX).await
    }

    async fn call_within<Q: Call>(
        &self,
        request: Q,
        within: Duration,
    ) -> Result<Q::Answer, Status> {
        let channel = match Q::PATH.starts_with("/runtime.v1.ImageService/") {
            true => &self.images,
            false => &self.runtime,
        };
        channel.unary(Q::PATH, &request, within).await
    }

    async fn made_here(&self) -> Result<Vec<SandboxId>, RuntimeError> {
        let listed = self.call(ListPodSandboxRequest { filter: None }).await;
        let items = listed.map_err(failed)?.items.into_iter();
        let ours = items.filter(|item| item.annotations.contains_key(CONFIG_ANNOTATION));
        Ok(ours.map(|item| SandboxId(item.id)).collect())
    }

    async fn health(&self) -> Health {
        let status = self.call_within(StatusRequest { verbose: false }, SILENT_MAX);
        let status = match status.await {
            Ok(status) => status,
            Err(error) => {
                tracing::warn!(%error, "the container runtime does not say how it is");
                let is_silent = self.heard_at.lock().elapsed() > SILENT_MAX;
                return Health {
                    runtime: is_silent.then(|| "container runtime is down".to_owned()),
                    network: None,
                };
            }
        };
        *self.heard_at.lock() = self.clock.monotonic();
        let conditions = status.status.unwrap_or_default().conditions;
        let unmet = |kind: &str, what: &str| {
            let found = conditions.iter().find(|condition| condition.kind == kind);
            let found = found.filter(|condition| !condition.status)?;
            Some(format!(
                "{what} not ready: {kind}=false reason:{} message:{}",
                found.reason, found.message
            ))
        };
        Health {
            runtime: unmet("RuntimeReady", "container runtime"),
            network: unmet("NetworkReady", "container runtime network"),
        }
    }

    /// Runtimes that take no part in addresses refuse this.
    async fn use_pod_cidrs(&self, cidrs: &str) -> Result<(), RuntimeError> {
        let network_config = Some(NetworkConfig {
            pod_cidr: cidrs.to_owned(),
        });
        let runtime_config = Some(RuntimeConfig { network_config });
        let told = self.call(UpdateRuntimeConfigRequest { runtime_config });
        match told.await {
            Err(status) if status.code != Code::UNIMPLEMENTED => Err(failed(status)),
            _ => Ok(()),
        }
    }

    async fn of_pod(&self, uid: &str) -> Result<PodState, RuntimeError> {
        let mut sandboxes = Vec::new();
        for listed in self.sandboxes(Some(uid)).await? {
            match self.sandbox_status(&listed.id).await {
                Ok(status) => sandboxes.push(status),
                Err(RuntimeError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut containers = self.containers(Some(uid)).await?;
        let is_known = |id: &SandboxId| sandboxes.iter().any(|sandbox| sandbox.id == *id);
        containers.retain(|container| is_known(&container.sandbox));
        Ok((sandboxes, containers))
    }

    async fn exec_sync(
        &self,
        id: &ContainerId,
        command: Vec<String>,
    ) -> Result<(i32, Vec<u8>), RuntimeError> {
        let request = ExecSyncRequest {
            container_id: id.0.clone(),
            cmd: command,
            timeout: 0,
        };
        let done = self.call_within(request, COMMAND_MAX).await;
        let done = done.map_err(|status| missing("container", &id.0, status))?;
        let mut output = done.stdout;
        output.extend(done.stderr);
        Ok((done.exit_code, output))
    }
}

/// Who runs a command bounds its time; this is for one who does not.
const COMMAND_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Runtime for CriRuntime {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn version(&self) -> String {
        format!("{}://{}", self.0.name, self.0.version)
    }

    fn has_user_namespaces(&self) -> BoxFuture<'_, bool> {
        let mut handlers = self.0.handlers.iter();
        let has = handlers.any(|handler| handler.name.is_empty() && handler.has_user_namespaces);
        Box::pin(std::future::ready(has))
    }

    fn handlers(&self) -> BoxFuture<'_, Vec<Handler>> {
        Box::pin(std::future::ready(self.0.handlers.clone()))
    }

    fn has_strict_groups(&self) -> bool {
        self.0.has_strict_groups
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.0.health())
    }

    fn makes_networks(&self) -> bool {
        true
    }

    fn use_pod_cidrs<'a>(&'a self, cidrs: &'a str) -> Answer<'a, ()> {
        Box::pin(self.0.use_pod_cidrs(cidrs))
    }

    fn set_group<'a>(&'a self, group: &'a str, resources: Resources) -> Answer<'a, ()> {
        Box::pin(async move { self.0.groups.make_pod(group, &resources) })
    }

    fn run_sandbox(&self, config: SandboxConfig) -> Answer<'_, SandboxId> {
        Box::pin(self.0.run_sandbox(config))
    }

    fn stop_sandbox<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        Box::pin(self.0.stop_sandbox(id))
    }

    fn remove_sandbox<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        Box::pin(self.0.remove_sandbox(id))
    }

    fn list_sandboxes(&self) -> Answer<'_, Vec<SandboxStatus>> {
        Box::pin(self.0.sandboxes(None))
    }

    fn sandbox_status<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, SandboxStatus> {
        Box::pin(self.0.sandbox_status(id))
    }

    fn has_sandbox_processes(&self) -> bool {
        true
    }

    fn of_pod<'a>(&'a self, uid: &'a str) -> Answer<'a, PodState> {
        Box::pin(self.0.of_pod(uid))
    }

    fn create_container<'a>(
        &'a self,
        sandbox: &'a SandboxId,
        config: ContainerConfig,
    ) -> Answer<'a, ContainerId> {
        Box::pin(self.0.create_container(sandbox, config))
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()> {
        Box::pin(self.0.start_container(id))
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace_seconds: i64) -> Answer<'a, ()> {
        Box::pin(self.0.stop_container(id, grace_seconds))
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()> {
        Box::pin(self.0.remove_container(id))
    }

    fn list_containers(&self) -> Answer<'_, Vec<ContainerStatus>> {
        Box::pin(self.0.containers(None))
    }

    fn container_status<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ContainerStatus> {
        Box::pin(self.0.container_status(id))
    }

    fn update_container<'a>(&'a self, id: &'a ContainerId, to: Resources) -> Answer<'a, ()> {
        Box::pin(self.0.update_container(id, to))
    }

    fn update_sandbox<'a>(&'a self, id: &'a SandboxId, to: Resources) -> Answer<'a, ()> {
        Box::pin(self.0.update_sandbox(id, to))
    }

    fn container_limits<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Limits> {
        Box::pin(self.0.container_limits(id))
    }

    fn sandbox_limits<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Limits> {
        Box::pin(self.0.sandbox_limits(id))
    }

    fn container_usage<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Option<Usage>> {
        Box::pin(self.0.container_usage(id))
    }

    fn sandbox_usage<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Usage>> {
        Box::pin(self.0.sandbox_usage(id))
    }

    fn total_usage(&self) -> Answer<'_, Option<TotalUsage>> {
        Box::pin(std::future::ready(Ok(self.0.groups.total_usage())))
    }

    fn container_disk<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, DiskUse> {
        Box::pin(self.0.container_disk(id))
    }

    fn limit_total(&self, resources: Resources) -> Answer<'_, ()> {
        Box::pin(std::future::ready(self.0.groups.limit_total(&resources)))
    }

    fn containers_directory(&self) -> PathBuf {
        self.0.disks.containers.clone()
    }

    fn images_directory(&self) -> PathBuf {
        self.0.disks.images.clone()
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()> {
        Box::pin(async {
            let container_id = id.0.clone();
            let asked = self
                .0
                .call(ReopenContainerLogRequest { container_id })
                .await;
            asked.map(drop).map_err(failed)
        })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, config: ExecConfig) -> Answer<'a, ExecStreams> {
        Box::pin(self.0.exec(id, config))
    }

    fn exec_sync<'a>(
        &'a self,
        id: &'a ContainerId,
        command: Vec<String>,
    ) -> Answer<'a, (i32, Vec<u8>)> {
        Box::pin(self.0.exec_sync(id, command))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, config: AttachConfig) -> Answer<'a, ExecStreams> {
        Box::pin(self.0.attach(id, config))
    }

    fn image_status<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageInfo>> {
        Box::pin(self.0.image_status(image))
    }

    fn pull_image<'a>(
        &'a self,
        image: &'a str,
        credentials: &'a [RegistryCredentials],
    ) -> Answer<'a, ImageInfo> {
        Box::pin(self.0.pull_image(image, credentials))
    }

    fn list_images(&self) -> Answer<'_, Vec<ImageInfo>> {
        Box::pin(self.0.list_images())
    }

    fn remove_image<'a>(&'a self, image: &'a str) -> Answer<'a, ()> {
        Box::pin(self.0.remove_image(image))
    }

    fn events(&self) -> broadcast::Receiver<ContainerEvent> {
        self.0.events.subscribe()
    }
}

#[cfg(test)]
mod tests;
