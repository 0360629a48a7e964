//! The runtime inside this binary: images from our own store, containers by libcontainer in a
//! shim each.
//!
//! The truth is on disk and in the shims; what is in memory is read back from there at `open`,
//! which finds running containers again by their sockets. One agent a directory, by a lock.
//! Nothing polls: a container's end is the end of the connection to its shim.

mod attach;
mod container;
mod exec;
mod image_volumes;
mod resize;
mod sandbox;
mod sealed;
mod terminal;
mod watch;

use super::cgroups::Hierarchies;
use super::contract::*;
use super::{Answer, HANDLER, Runtime, RuntimeError};
use crate::images::{ImageError, ImageStore};
use crate::usage::DiskUse;
use container::Container;
use futures::future::BoxFuture;
use nix::fcntl::{Flock, FlockArg};
use parking_lot::Mutex;
use sandbox::Sandbox;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::process::Command;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A receiver that is this many events behind lists again.
const EVENTS_MAX: usize = 256;

#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's data directory: `images`, `containers` and `sandboxes` are below it.
    pub data_dir: PathBuf,
    /// The group all pods are in, such as `/coracle`. Empty: one that no other data directory
    /// has.
    pub cgroup_root: String,
    /// The program and first arguments of `coracle shim`.
    pub shim: Vec<OsString>,
    pub insecure_registries: Vec<String>,
}

impl Config {
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            cgroup_root: String::new(),
            shim: vec!["/proc/self/exe".into(), "shim".into()],
            insecure_registries: Vec::new(),
        }
    }
}

/// A cheap handle; the last one to go lets the containers run on.
#[derive(Clone, Debug)]
pub struct EmbeddedRuntime(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    images: ImageStore,
    hierarchies: Hierarchies,
    sandboxes: Mutex<HashMap<SandboxId, Arc<Sandbox>>>,
    containers: Mutex<HashMap<ContainerId, Arc<Container>>>,
    events: broadcast::Sender<ContainerEvent>,
    /// Ends the watching tasks.
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
    has_user_namespaces: tokio::sync::OnceCell<bool>,
    program: sealed::Sealed,
    _lock: Flock<File>,
}

impl EmbeddedRuntime {
    /// Finds again what runs, and cleans up what a crash left half done. Needs a tokio runtime.
    pub fn open(mut config: Config) -> Result<Self, RuntimeError> {
        for directory in [&config.data_dir, &config.data_dir.join("containers")] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(io_error(format!("cannot make {}", directory.display())))?;
        }
        // `coracle image` may have been here first, and is not particular about it.
        fs::set_permissions(&config.data_dir, fs::Permissions::from_mode(0o700)).map_err(
            io_error(format!("cannot change {}", config.data_dir.display())),
        )?;
        // The shim has another working directory, and the name of the groups must not change.
        config.data_dir = fs::canonicalize(&config.data_dir).map_err(io_error(format!(
            "cannot find {}",
            config.data_dir.display()
        )))?;
        if config.cgroup_root.is_empty() {
            config.cgroup_root = own_cgroup(&config.data_dir);
        }
        let sandboxes = config.data_dir.join("sandboxes");
        fs::create_dir_all(&sandboxes)
            .map_err(io_error(format!("cannot make {}", sandboxes.display())))?;
        let lock = lock(&config.data_dir)?;
        let images = ImageStore::open(&config.data_dir.join("images")).map_err(image_error)?;
        let images = images.with_insecure_registries(config.insecure_registries.clone());
        let hierarchies =
            Hierarchies::of_host().map_err(io_error("cannot read the mounted cgroups".into()))?;
        hierarchies
            .make_root(&config.cgroup_root)
            .map_err(io_error(format!(
                "cannot make the cgroup {}",
                config.cgroup_root
            )))?;
        let stop = CancellationToken::new();
        let inner = Arc::new(Inner {
            images,
            hierarchies,
            sandboxes: Mutex::default(),
            containers: Mutex::default(),
            events: broadcast::Sender::new(EVENTS_MAX),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            has_user_namespaces: tokio::sync::OnceCell::new(),
            program: sealed::Sealed::new(Path::new(
                config.shim.first().map_or(OsStr::new(""), |one| one),
            )),
            _lock: lock,
            config,
        });
        inner.load_sandboxes()?;
        inner.load_containers()?;
        inner.release_orphaned_images();
        Ok(Self(inner))
    }

    pub fn images(&self) -> &ImageStore {
        &self.0.images
    }

    /// The group all pods are in.
    pub fn cgroup_root(&self) -> &str {
        &self.0.config.cgroup_root
    }

    /// Ends and removes everything, and the control groups.
    pub async fn wipe(&self) -> Result<(), RuntimeError> {
        let ids: Vec<SandboxId> = self.0.sandboxes.lock().keys().cloned().collect();
        for id in ids {
            self.0.remove_sandbox(&id).await?;
        }
        self.0.clear_group(&self.0.config.cgroup_root).await;
        Ok(())
    }
}

pub fn own_cgroup(data_dir: &Path) -> String {
    let digest = crate::images::digest::of(data_dir.as_os_str().as_encoded_bytes());
    format!("/coracle-{}", &crate::images::digest::digits(&digest)[..8])
}

pub fn lock(data_dir: &Path) -> Result<Flock<File>, RuntimeError> {
    let path = data_dir.join("runtime.lock");
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(io_error(format!("cannot open {}", path.display())))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| RuntimeError::Failed(format!("another agent uses {}", data_dir.display())))
}

fn io_error(action: String) -> impl FnOnce(io::Error) -> RuntimeError {
    move |source| RuntimeError::Io { action, source }
}

fn image_error(error: ImageError) -> RuntimeError {
    match error {
        ImageError::NotPresent(image) => RuntimeError::ImageNotPresent(image),
        ImageError::Reference(error) => RuntimeError::Invalid(error.to_string()),
        other => RuntimeError::Pull(crate::error::chain(&other)),
    }
}

fn new_id() -> String {
    hex::encode(rand::random::<[u8; 32]>())
}

/// A directory and its record, which goes first: without it the rest is taken for half-made. May
/// be repeated, also where an agent was killed while something was mounted there.
fn remove(directory: &Path, record: &str) -> std::io::Result<()> {
    let missing_is_fine = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    crate::mounts::unmount_below(directory)?;
    missing_is_fine(fs::remove_file(directory.join(record)))?;
    missing_is_fine(crate::tree::remove(directory))
}

/// Names of the directories in a directory that are ids of ours.
fn ids_in(directory: &Path) -> Result<Vec<String>, RuntimeError> {
    let failed = || io_error(format!("cannot read {}", directory.display()));
    let mut ids = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed())? {
        let name = entry
            .map_err(failed())?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            ids.push(name);
        }
    }
    Ok(ids)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| RuntimeError::Failed(format!("a task broke off: {error}")))?
}

impl Inner {
    fn containers_directory(&self) -> PathBuf {
        self.config.data_dir.join("containers")
    }

    fn sandboxes_directory(&self) -> PathBuf {
        self.config.data_dir.join("sandboxes")
    }

    fn shim(&self, verb: &str, directory: &Path) -> Command {
        let mut words = self.config.shim.iter();
        let program = words.next().cloned().unwrap_or_default();
        let mut command = Command::new(self.program.name(&program));
        command.args(words).arg(verb).arg(directory);
        command
    }

    /// Overlayfs takes layers with other ids since Linux 5.19.
    async fn probe(&self) -> bool {
        let probed = self.shim("probe", &self.config.data_dir).output();
        crate::kernel::version() >= (5, 19) && probed.await.is_ok_and(|shim| shim.status.success())
    }

    async fn clear_group(&self, group: &str) {
        self.hierarchies.clear(group).await;
    }

    /// A crash between holding an image and recording the container leaves the hold.
    fn release_orphaned_images(&self) {
        let Ok(holders) = self.images.holders() else {
            return;
        };
        let known = |holder: &String| {
            self.containers
                .lock()
                .contains_key(&ContainerId(holder.clone()))
        };
        for holder in holders.into_iter().filter(|holder| !known(holder)) {
            if let Err(error) = self.images.release(&holder) {
                tracing::warn!(%error, holder, "cannot release an image");
            }
        }
    }
}

impl Runtime for EmbeddedRuntime {
    fn name(&self) -> &'static str {
        HANDLER
    }

    /// By its own name, and as the one that is meant when none is named.
    fn handlers(&self) -> BoxFuture<'_, Vec<Handler>> {
        Box::pin(async {
            let usual = Handler {
                name: String::new(),
                has_recursive_read_only: crate::kernel::has_recursive_read_only(),
                has_user_namespaces: self.has_user_namespaces().await,
            };
            let name = HANDLER.to_owned();
            vec![usual.clone(), Handler { name, ..usual }]
        })
    }

    fn version(&self) -> String {
        format!("coracle://{}", env!("CARGO_PKG_VERSION"))
    }

    fn has_user_namespaces(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            *self
                .0
                .has_user_namespaces
                .get_or_init(|| self.0.probe())
                .await
        })
    }

    fn set_group<'a>(&'a self, group: &'a str, resources: Resources) -> Answer<'a, ()> {
        Box::pin(async move {
            let group = format!("{}/{group}", self.0.config.cgroup_root);
            let made = self.0.hierarchies.make_pod(&group, &resources);
            made.map_err(io_error(format!("cannot make the cgroup {group}")))
        })
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
        let sandboxes = self.0.sandboxes.lock();
        let list = sandboxes.values().map(|sandbox| sandbox.status()).collect();
        Box::pin(std::future::ready(Ok(list)))
    }

    fn sandbox_status<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, SandboxStatus> {
        let status = self.0.sandbox(id).map(|sandbox| sandbox.status());
        Box::pin(std::future::ready(status))
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
        let containers = self.0.containers.lock();
        let list = containers
            .values()
            .map(|container| container.status())
            .collect();
        Box::pin(std::future::ready(Ok(list)))
    }

    fn container_status<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ContainerStatus> {
        let status = self.0.container(id).map(|container| container.status());
        Box::pin(std::future::ready(status))
    }

    fn update_container<'a>(&'a self, id: &'a ContainerId, to: Resources) -> Answer<'a, ()> {
        let done = self.0.container(id);
        let done = done.and_then(|container| self.0.update_container(&container, &to));
        Box::pin(std::future::ready(done))
    }

    fn update_sandbox<'a>(&'a self, id: &'a SandboxId, to: Resources) -> Answer<'a, ()> {
        let done = self.0.sandbox(id);
        let done = done.and_then(|sandbox| self.0.update_sandbox(&sandbox, &to));
        Box::pin(std::future::ready(done))
    }

    fn container_limits<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Limits> {
        let limits = self
            .0
            .container(id)
            .map(|one| self.0.container_limits(&one));
        Box::pin(std::future::ready(limits))
    }

    fn sandbox_limits<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Limits> {
        let limits = self.0.sandbox(id).map(|one| self.0.sandbox_limits(&one));
        Box::pin(std::future::ready(limits))
    }

    fn container_usage<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, Option<Usage>> {
        let usage = self.0.container(id).map(|container| {
            let is_running = container.is_running();
            is_running
                .then(|| self.0.hierarchies.usage(&container.record.cgroup()))
                .flatten()
        });
        Box::pin(std::future::ready(usage))
    }

    fn sandbox_usage<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Usage>> {
        let sandbox = self.0.sandbox(id);
        let usage = sandbox.map(|sandbox| self.0.hierarchies.usage(&sandbox.record.cgroup));
        Box::pin(std::future::ready(usage))
    }

    fn total_usage(&self) -> Answer<'_, Option<TotalUsage>> {
        let (hierarchies, group) = (&self.0.hierarchies, self.cgroup_root());
        let usage = hierarchies.usage(group).map(|usage| TotalUsage {
            usage,
            memory_limit_bytes: hierarchies.memory_limit_bytes(group),
        });
        Box::pin(std::future::ready(Ok(usage)))
    }

    fn container_disk<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, DiskUse> {
        Box::pin(async {
            let upper = self.0.container(id)?.directory.join("upper");
            blocking(move || {
                let failed = io_error(format!("cannot measure {}", upper.display()));
                crate::usage::disk::measure(&upper).map_err(failed)
            })
            .await
        })
    }

    fn limit_total(&self, resources: Resources) -> Answer<'_, ()> {
        let limited = self.0.hierarchies.limit_all(self.cgroup_root(), &resources);
        let limited = limited.map_err(|error| RuntimeError::Failed(error.to_string()));
        Box::pin(std::future::ready(limited))
    }

    fn containers_directory(&self) -> PathBuf {
        self.0.containers_directory()
    }

    fn images_directory(&self) -> PathBuf {
        self.0.config.data_dir.join("images")
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Answer<'a, ()> {
        Box::pin(async { self.0.container(id)?.request("reopen").await })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, config: ExecConfig) -> Answer<'a, ExecStreams> {
        Box::pin(self.0.exec(id, config))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, config: AttachConfig) -> Answer<'a, ExecStreams> {
        Box::pin(self.0.attach_streams(id, config))
    }

    fn image_status<'a>(&'a self, image: &'a str) -> Answer<'a, Option<ImageInfo>> {
        Box::pin(std::future::ready(
            self.0.images.find(image).map_err(image_error),
        ))
    }

    fn pull_image<'a>(
        &'a self,
        image: &'a str,
        credentials: &'a [RegistryCredentials],
    ) -> Answer<'a, ImageInfo> {
        Box::pin(async {
            self.0
                .images
                .pull(image, credentials)
                .await
                .map_err(image_error)
        })
    }

    fn list_images(&self) -> Answer<'_, Vec<ImageInfo>> {
        Box::pin(std::future::ready(
            self.0.images.list().map_err(image_error),
        ))
    }

    fn remove_image<'a>(&'a self, image: &'a str) -> Answer<'a, ()> {
        let (images, image) = (self.0.images.clone(), image.to_owned());
        Box::pin(blocking(move || {
            images.remove_image(&image).map_err(image_error)
        }))
    }

    fn events(&self) -> broadcast::Receiver<ContainerEvent> {
        self.0.events.subscribe()
    }
}
