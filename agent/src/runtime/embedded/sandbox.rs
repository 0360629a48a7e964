//! Sandboxes: pinned namespaces, a tmpfs for /dev/shm and a control group; no process.

use super::super::record::{self, REAPER, SANDBOX, STOPPED, SandboxRecord};
use super::super::{HANDLER, RuntimeError, contract::*};
use super::resize::Asked;
use super::{Inner, blocking, ids_in, io_error, new_id, remove};
use coracle_client::clock::Clock;
use nix::mount::{MntFlags, umount2};
use nix::sys::statfs::{NSFS_MAGIC, statfs};
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

/// Of a sandbox's directory: what is mounted there.
const PINNED: [&str; 6] = ["ns/net", "ns/uts", "ns/ipc", "ns/pid", "ns/user", "shm"];
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Debug)]
pub struct Sandbox {
    pub record: SandboxRecord,
    pub directory: PathBuf,
    pub asked: Asked,
    state: Mutex<SandboxState>,
}

impl Sandbox {
    pub fn status(&self) -> SandboxStatus {
        let is_host = self.record.config.host_network;
        SandboxStatus {
            id: self.record.id.clone(),
            config: self.record.config.clone(),
            state: self.state(),
            created_at: self.record.created_at,
            network_namespace: (!is_host).then(|| self.directory.join("ns/net")),
            addresses: Default::default(),
        }
    }

    pub fn is_ready(&self) -> bool {
        self.state() == SandboxState::Ready
    }

    /// A shared PID namespace takes no process in any more when its first one is gone.
    fn state(&self) -> SandboxState {
        let state = *self.state.lock();
        if self.record.config.shared_pid && !self.reaper_lives() {
            return SandboxState::NotReady;
        }
        state
    }

    fn reaper_lives(&self) -> bool {
        let Ok(pid) = record::read::<i32>(&self.directory.join(REAPER)) else {
            return false;
        };
        let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
        let pinned = inode(&self.directory.join("ns/pid"));
        pinned.is_some() && pinned == inode(Path::new(&format!("/proc/{pid}/ns/pid")))
    }

    /// Its mounts are gone after this, however often it is called.
    fn unpin(&self) -> io::Result<()> {
        for mount in PINNED {
            let path = self.directory.join(mount);
            // Not mounted, or not there: as wanted.
            while umount2(&path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW).is_ok() {}
        }
        fs::write(self.directory.join(STOPPED), "")
    }
}

/// False when whoever made the namespaces was ended before all of them were pinned.
fn is_whole(config: &SandboxConfig, directory: &Path) -> bool {
    let is_pinned = |pin: &str| {
        let found = statfs(&directory.join(pin));
        found.is_ok_and(|found| found.filesystem_type() == NSFS_MAGIC)
    };
    (config.host_network || (is_pinned("ns/net") && is_pinned("ns/uts")))
        && (config.host_ipc || is_pinned("ns/ipc"))
}

/// Changes with each boot: namespaces pinned in another one are gone.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

impl Inner {
    pub fn load_sandboxes(&self) -> Result<(), RuntimeError> {
        let boot_id = boot_id();
        for id in ids_in(&self.sandboxes_directory())? {
            let directory = self.sandboxes_directory().join(&id);
            let Ok(record) = record::read::<SandboxRecord>(&directory.join(SANDBOX)) else {
                self.discard_sandbox(&directory);
                continue;
            };
            let is_ready = record.boot_id == boot_id
                && !directory.join(STOPPED).exists()
                && is_whole(&record.config, &directory);
            let state = if is_ready {
                SandboxState::Ready
            } else {
                SandboxState::NotReady
            };
            let sandbox = Sandbox {
                asked: Asked::load(&directory, &record.config.resources),
                record,
                directory,
                state: Mutex::new(state),
            };
            self.sandboxes
                .lock()
                .insert(SandboxId(id), Arc::new(sandbox));
        }
        Ok(())
    }

    pub fn sandbox(&self, id: &SandboxId) -> Result<Arc<Sandbox>, RuntimeError> {
        let found = self.sandboxes.lock().get(id).cloned();
        found.ok_or_else(|| RuntimeError::NotFound {
            what: "sandbox",
            id: id.0.clone(),
        })
    }

    pub async fn run_sandbox(&self, config: SandboxConfig) -> Result<SandboxId, RuntimeError> {
        let id = SandboxId(new_id());
        if !["", HANDLER].contains(&config.handler.as_str()) {
            return Err(RuntimeError::Failed(format!(
                "failed to get sandbox runtime: no runtime for {:?} is configured",
                config.handler
            )));
        }
        let name = config.cgroup.trim_matches('/');
        if name.is_empty() || name.contains("..") {
            return Err(RuntimeError::Invalid(format!(
                "{:?} is no cgroup",
                config.cgroup
            )));
        }
        let record = SandboxRecord {
            id: id.clone(),
            cgroup: format!("{}/{name}", self.config.cgroup_root),
            created_at: Clock::system().now(),
            boot_id: boot_id(),
            config,
        };
        self.hierarchies
            .make_pod(&record.cgroup, &record.config.resources)
            .map_err(io_error(format!(
                "cannot make the cgroup {}",
                record.cgroup
            )))?;
        let directory = self.sandboxes_directory().join(&id.0);
        let made = match prepare(&directory, &record) {
            Ok(()) => self.make_namespaces(&directory).await,
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            self.hierarchies.kill(&record.own_cgroup());
            self.discard_sandbox(&directory);
            self.hierarchies.remove(&record.cgroup);
            return Err(error);
        }
        let state = Mutex::new(SandboxState::Ready);
        let sandbox = Sandbox {
            asked: Asked::load(&directory, &record.config.resources),
            record,
            directory,
            state,
        };
        self.sandboxes.lock().insert(id.clone(), Arc::new(sandbox));
        Ok(id)
    }

    async fn make_namespaces(&self, directory: &Path) -> Result<(), RuntimeError> {
        // A pod may see these words: they tell no path of the host.
        let shim = self
            .shim("sandbox", Path::new("."))
            .arg0("coracle")
            .current_dir(directory)
            .stdin(Stdio::null())
            .output()
            .await;
        let shim = shim.map_err(io_error("cannot run the shim".into()))?;
        match shim.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&shim.stderr).trim().to_owned();
                let said = if said.is_empty() {
                    shim.status.to_string()
                } else {
                    said
                };
                Err(RuntimeError::Failed(format!(
                    "cannot make the sandbox: {said}"
                )))
            }
        }
    }

    pub async fn stop_sandbox(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let sandbox = self.sandbox(id)?;
        for container in self.containers_of(id) {
            self.stop_container(&container, 0).await?;
        }
        *sandbox.state.lock() = SandboxState::NotReady;
        if sandbox.record.config.shared_pid {
            self.clear_group(&sandbox.record.own_cgroup()).await;
        }
        blocking(move || {
            let path = sandbox.directory.display().to_string();
            sandbox
                .unpin()
                .map_err(io_error(format!("cannot stop the sandbox in {path}")))
        })
        .await
    }

    pub async fn remove_sandbox(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let Ok(sandbox) = self.sandbox(id) else {
            return Ok(());
        };
        for container in self.containers_of(id) {
            self.remove_container(&container).await?;
        }
        self.stop_sandbox(id).await?;
        let shared = |other: &Arc<Sandbox>| {
            other.record.cgroup == sandbox.record.cgroup && other.record.id != *id
        };
        if !self.sandboxes.lock().values().any(shared) {
            self.clear_group(&sandbox.record.cgroup).await;
        }
        let directory = sandbox.directory.clone();
        blocking(move || {
            remove(&directory, SANDBOX)
                .map_err(io_error(format!("cannot remove {}", directory.display())))
        })
        .await?;
        self.sandboxes.lock().remove(id);
        Ok(())
    }

    fn containers_of(&self, sandbox: &SandboxId) -> Vec<ContainerId> {
        let containers = self.containers.lock();
        let here = containers
            .values()
            .filter(|one| one.record.sandbox.id == *sandbox);
        here.map(|one| one.record.id.clone()).collect()
    }

    /// Of a sandbox that was never made whole.
    fn discard_sandbox(&self, directory: &Path) {
        if let Err(error) = remove(directory, SANDBOX) {
            tracing::warn!(%error, directory = %directory.display(), "cannot remove a sandbox");
        }
    }
}

fn prepare(directory: &Path, record: &SandboxRecord) -> Result<(), RuntimeError> {
    let failed = || io_error(format!("cannot make {}", directory.display()));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(directory)
        .map_err(failed())?;
    for part in ["ns", "shm"] {
        fs::create_dir(directory.join(part)).map_err(failed())?;
    }
    let hostname = format!("{}\n", record.config.hostname);
    fs::write(directory.join("hostname"), hostname).map_err(failed())?;
    record::write(&directory.join(SANDBOX), record).map_err(failed())
}
