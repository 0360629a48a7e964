//! Containers: creation, start, stop and removal, and what is known of each.

use super::super::record::{
    self, CONTAINER, ContainerRecord, EXIT, ExitRecord, SECCOMP_PROFILE, SOCKET, STARTED,
    StartedRecord,
};
use super::super::shim::Report;
use super::super::{RuntimeError, app_armor, contract::*, process, seccomp};
use super::resize::Asked;
use super::{Inner, blocking, ids_in, image_error, image_volumes, io_error, new_id, remove};
use coracle_client::clock::Clock;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;

/// From SIGKILL to the shim's report; more only when the kernel is stuck on a device.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);
/// As containerd reports a container that never came to be.
const START_ERROR_CODE: i32 = 128;

#[derive(Clone, Debug)]
pub enum State {
    Created,
    /// None while the shim has not said when: read again later.
    Running(Option<StartedRecord>),
    Exited(Option<StartedRecord>, ExitRecord),
}

#[derive(Debug)]
pub struct Container {
    pub record: ContainerRecord,
    pub directory: PathBuf,
    pub asked: Asked,
    pub state: watch::Sender<State>,
    /// One start, stop or removal at a time.
    gate: tokio::sync::Mutex<()>,
    pub requests: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
    /// Set once by `remove`, so that what comes after finds nothing.
    removed: Mutex<bool>,
}

impl Container {
    fn new(record: ContainerRecord, directory: PathBuf, state: State) -> Arc<Self> {
        Arc::new(Self {
            asked: Asked::load(&directory, &record.config.resources),
            record,
            directory,
            state: watch::Sender::new(state),
            gate: tokio::sync::Mutex::default(),
            requests: tokio::sync::Mutex::default(),
            removed: Mutex::default(),
        })
    }

    pub fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), State::Running(_))
    }

    pub fn status(&self) -> ContainerStatus {
        let record = &self.record;
        let mut status = ContainerStatus {
            id: record.id.clone(),
            sandbox: record.sandbox.id.clone(),
            config: record.config.clone(),
            state: ContainerState::Created,
            created_at: record.created_at,
            started_at: None,
            finished_at: None,
            exit_code: None,
            reason: String::new(),
            message: String::new(),
            image_id: record.image_id.clone(),
            pid: None,
            user: None,
        };
        match &*self.state.borrow() {
            State::Created => {}
            State::Running(started) => {
                let started = started.clone().or_else(|| self.read_started());
                status.state = ContainerState::Running;
                status.started_at = started.as_ref().map(|started| started.started_at);
                status.pid = started.as_ref().map(|started| started.pid);
                status.user = started.and_then(|started| started.user);
            }
            State::Exited(started, exit) => {
                status.state = ContainerState::Exited;
                status.started_at = started.as_ref().map(|started| started.started_at);
                status.user = started.as_ref().and_then(|started| started.user.clone());
                status.finished_at = Some(exit.finished_at);
                status.exit_code = Some(exit.exit_code);
                status.reason.clone_from(&exit.reason);
                status.message.clone_from(&exit.message);
            }
        }
        status
    }

    pub fn read_started(&self) -> Option<StartedRecord> {
        record::read(&self.directory.join(STARTED)).ok()
    }

    /// One line to the shim. None of them has an answer but what comes of it.
    pub async fn request(&self, line: &str) -> Result<(), RuntimeError> {
        let mut requests = self.requests.lock().await;
        let Some(shim) = requests.as_mut() else {
            return Err(RuntimeError::Failed(format!(
                "container {} does not run",
                self.record.id
            )));
        };
        tokio::io::AsyncWriteExt::write_all(shim, format!("{line}\n").as_bytes())
            .await
            .map_err(io_error("cannot reach the shim".into()))
    }

    async fn exited(&self, within: Duration) -> bool {
        let mut state = self.state.subscribe();
        let exited = state.wait_for(|state| !matches!(state, State::Running(_)));
        tokio::time::timeout(within, exited).await.is_ok()
    }
}

impl Inner {
    pub fn load_containers(self: &Arc<Self>) -> Result<(), RuntimeError> {
        for id in ids_in(&self.containers_directory())? {
            let directory = self.containers_directory().join(&id);
            let Ok(record) = record::read::<ContainerRecord>(&directory.join(CONTAINER)) else {
                if let Err(error) = remove(&directory, CONTAINER) {
                    tracing::warn!(%error, id, "cannot remove a half-made container");
                }
                continue;
            };
            let started: Option<StartedRecord> = record::read(&directory.join(STARTED)).ok();
            let exit = record::read_if_there::<ExitRecord>(&directory.join(EXIT))
                .ok()
                .flatten();
            let was_started = started.is_some() || directory.join(SOCKET).exists();
            let state = match exit {
                Some(exit) => State::Exited(started, exit),
                None if was_started => State::Running(started),
                None => State::Created,
            };
            let is_running = matches!(state, State::Running(_));
            let container = Container::new(record, directory, state);
            self.containers
                .lock()
                .insert(ContainerId(id), container.clone());
            if is_running {
                self.attach(&container);
            }
        }
        Ok(())
    }

    pub fn container(&self, id: &ContainerId) -> Result<Arc<Container>, RuntimeError> {
        let found = self.containers.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound {
            what: "container",
            id: id.0.clone(),
        })
    }

    pub async fn create_container(
        &self,
        sandbox: &SandboxId,
        config: ContainerConfig,
    ) -> Result<ContainerId, RuntimeError> {
        let sandbox = self.sandbox(sandbox)?;
        if !sandbox.is_ready() {
            return Err(RuntimeError::Failed(format!(
                "sandbox {} is stopped",
                sandbox.record.id
            )));
        }
        let id = ContainerId(new_id());
        let directory = self.containers_directory().join(&id.0);
        let (images, image, holder) = (self.images.clone(), config.image.clone(), id.0.clone());
        let shim_cgroup = format!("{}/shims", self.config.cgroup_root);
        let made = blocking(move || {
            let mut all = vec![image.as_str()];
            let volumes = config.mounts.iter().map(|mount| mount.image.as_str());
            all.extend(volumes.filter(|image| !image.is_empty()));
            let mut volumes = images.hold(&all, &holder).map_err(image_error)?;
            let held = volumes.remove(0);
            let record = ContainerRecord {
                id: ContainerId(holder.clone()),
                sandbox: sandbox.record.clone(),
                sandbox_directory: sandbox.directory.clone(),
                config,
                created_at: Clock::system().now(),
                image_id: held.id,
                image: held.config,
                layers_count: held.layers.len(),
                shim_cgroup,
            };
            let prepared = check(&record).and_then(|profile| {
                prepare(&directory, &held.layers, &record, &profile)
                    .and_then(|()| image_volumes::prepare(&directory, &volumes))
                    .map_err(io_error(format!("cannot make {}", directory.display())))?;
                image_volumes::check(&directory, &record)?;
                record::write(&directory.join(CONTAINER), &record)
                    .map_err(io_error(format!("cannot make {}", directory.display())))
            });
            if let Err(error) = prepared {
                let _ = remove(&directory, CONTAINER);
                let _ = images.release(&holder);
                return Err(error);
            }
            Ok(Container::new(record, directory, State::Created))
        });
        let container = made.await?;
        self.containers.lock().insert(id.clone(), container);
        Ok(id)
    }

    pub async fn start_container(self: &Arc<Self>, id: &ContainerId) -> Result<(), RuntimeError> {
        let container = self.container(id)?;
        let _gate = container.gate.lock().await;
        match &*container.state.borrow() {
            State::Created => {}
            State::Running(_) => return Ok(()),
            State::Exited(..) => {
                return Err(RuntimeError::Failed(format!("container {id} has ended")));
            }
        }
        match self.launch(&container).await {
            Ok(()) => {
                let started = container.read_started();
                container.state.send_replace(State::Running(started));
                // Before the watch, which may tell of the end at once.
                self.announce(&container, EventKind::Started);
                self.attach(&container);
                Ok(())
            }
            Err(error) => {
                let exit = ExitRecord {
                    exit_code: START_ERROR_CODE,
                    reason: "StartError".to_owned(),
                    message: error.to_string(),
                    finished_at: Clock::system().now(),
                };
                self.end(&container, exit);
                Err(error)
            }
        }
    }

    async fn launch(&self, container: &Container) -> Result<(), RuntimeError> {
        if container.directory.join(SOCKET).exists() {
            return Ok(()); // By the agent before this one, which went while it waited.
        }
        let shim = self
            .shim("run", &container.directory)
            .stdin(Stdio::null())
            .output()
            .await;
        let shim = shim.map_err(io_error("cannot run the shim".into()))?;
        let report: Report = serde_json::from_slice(&shim.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&shim.stderr).trim().to_owned();
            RuntimeError::Failed(format!("the shim failed ({}) {said}", shim.status))
        })?;
        match report.pid {
            Some(_) => Ok(()),
            None => Err(RuntimeError::Failed(format!(
                "failed to start: {}",
                report.error
            ))),
        }
    }

    pub async fn stop_container(
        &self,
        id: &ContainerId,
        grace_seconds: i64,
    ) -> Result<(), RuntimeError> {
        let Ok(container) = self.container(id) else {
            return Ok(());
        };
        let _gate = container.gate.lock().await;
        self.stop(&container, grace_seconds).await
    }

    /// The gate is held.
    async fn stop(&self, container: &Container, grace_seconds: i64) -> Result<(), RuntimeError> {
        if !container.is_running() {
            return Ok(());
        }
        if let Ok(seconds @ 1..) = u64::try_from(grace_seconds) {
            let signal = process::stop_signal(&container.record.config, &container.record.image);
            // A shim that cannot be reached has ended, or is killed with the rest below.
            let _ = container.request(&format!("kill {signal}")).await;
            if container.exited(Duration::from_secs(seconds)).await {
                return Ok(());
            }
        }
        let _ = container.request("kill 9").await;
        self.hierarchies.kill(&container.record.cgroup());
        match container.exited(KILL_TIMEOUT).await {
            true => Ok(()),
            false => {
                let id = &container.record.id;
                Err(RuntimeError::Failed(format!("container {id} does not die")))
            }
        }
    }

    pub async fn remove_container(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let Ok(container) = self.container(id) else {
            return Ok(());
        };
        let _gate = container.gate.lock().await;
        if *container.removed.lock() {
            return Ok(());
        }
        self.stop(&container, 0).await?;
        let (images, holder) = (self.images.clone(), id.0.clone());
        let directory = container.directory.clone();
        blocking(move || {
            remove(&directory, CONTAINER)
                .map_err(io_error(format!("cannot remove {}", directory.display())))?;
            images.release(&holder).map_err(image_error)
        })
        .await?;
        self.hierarchies.remove(&container.record.cgroup());
        *container.removed.lock() = true;
        self.containers.lock().remove(id);
        Ok(())
    }

    /// Records an end that no shim recorded, and tells of it.
    pub fn end(&self, container: &Container, exit: ExitRecord) {
        if let Err(error) = record::write(&container.directory.join(EXIT), &exit) {
            tracing::warn!(%error, id = %container.record.id, "cannot record a container's end");
        }
        self.ended(container, exit);
    }

    pub fn ended(&self, container: &Container, exit: ExitRecord) {
        let kind = EventKind::Exited {
            exit_code: exit.exit_code,
            reason: exit.reason.clone(),
        };
        container
            .state
            .send_replace(State::Exited(container.read_started(), exit));
        self.announce(container, kind);
    }

    fn announce(&self, container: &Container, kind: EventKind) {
        // Nobody listening is as good as anybody.
        let _ = self.events.send(ContainerEvent {
            container: container.record.id.clone(),
            sandbox: container.record.sandbox.id.clone(),
            pod_uid: container.record.sandbox.config.pod_uid.clone(),
            kind,
        });
    }
}

/// What can be said before the start, in upstream's words. Answers with the seccomp profile.
fn check(record: &ContainerRecord) -> Result<Vec<u8>, RuntimeError> {
    if process::arguments(&record.config, &record.image).is_none() {
        return Err(RuntimeError::Invalid("no command specified".into()));
    }
    app_armor::prepare(&record.config.security).map_err(RuntimeError::Invalid)?;
    match &record.config.security.seccomp {
        Seccomp::Localhost(path) if !record.config.security.privileged => {
            seccomp::read(path).map_err(RuntimeError::Invalid)
        }
        _ => Ok(Vec::new()),
    }
}

fn prepare(
    directory: &Path,
    layers: &[PathBuf],
    record: &ContainerRecord,
    seccomp_profile: &[u8],
) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory)?;
    for part in ["l", "upper", "work", "rootfs", "x"] {
        fs::create_dir(directory.join(part))?;
    }
    record::link_layers(directory, layers)?;
    if !seccomp_profile.is_empty() {
        fs::write(directory.join(SECCOMP_PROFILE), seccomp_profile)?;
    }
    let sandbox = &record.sandbox.config;
    let first_id = sandbox.id_range.map_or(0, |range| range.first);
    // An owner that the container has not is its root.
    let on_node = |id| sandbox.id_on_node(id).unwrap_or(first_id);
    let upper = directory.join("upper");
    let mut mode = 0o755;
    if let Some(top) = layers.first() {
        // The root of the stack shows the owner and mode of the topmost directory.
        let found = fs::metadata(top)?;
        mode = found.mode() & 0o7777;
        std::os::unix::fs::chown(
            &upper,
            Some(on_node(found.uid())),
            Some(on_node(found.gid())),
        )?;
    } else {
        std::os::unix::fs::chown(&upper, Some(first_id), Some(first_id))?;
    }
    fs::set_permissions(&upper, fs::Permissions::from_mode(mode))
}
