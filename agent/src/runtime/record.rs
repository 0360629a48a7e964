//! What is kept on disk of sandboxes and containers, read and written by agent and shim.
//!
//! Every file is replaced as a whole. A directory without its main record is what a crash left
//! of a creation or removal, and is removed.
//!
//! ```text
//! sandboxes/<id>/sandbox.json   the record        containers/<id>/container.json  the record
//!               /stopped        stopped once                     /started.json    by the shim
//!               /ns/{net,ipc,uts,pid}  pinned                        /exit.json       by the shim
//!               /shm            tmpfs                            /s               its socket
//!               /hostname                                        /l/<n>           layers
//!                                                                /upper /work /rootfs /x /parts
//!                                                                /seccomp.json /seccomp.bpf
//!                                                                /confinement.json
//!                                                                /v/<n>           image volumes
//! ```

use super::contract::{ContainerConfig, ContainerId, ContainerUser, SandboxConfig, SandboxId};
use crate::images::manifest::ImageConfig;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const SANDBOX: &str = "sandbox.json";
pub const STOPPED: &str = "stopped";
/// The limits that were asked for last, when that was after the start.
pub const RESOURCES: &str = "resources.json";
/// Of a sandbox whose containers share a PID namespace: the process id of its first process.
pub const REAPER: &str = "reaper.json";
pub const CONTAINER: &str = "container.json";
pub const STARTED: &str = "started.json";
pub const EXIT: &str = "exit.json";
pub const SOCKET: &str = "s";
/// Of directories that are mounted in part.
pub const PARTS: &str = "parts";
/// A copy of the profile `Localhost`, as it was when the container was made.
pub const SECCOMP_PROFILE: &str = "seccomp.json";

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SandboxRecord {
    pub id: SandboxId,
    pub config: SandboxConfig,
    pub created_at: Timestamp,
    /// The cgroup all of the pod is in, from the root of each hierarchy.
    pub cgroup: String,
    pub boot_id: String,
}

impl SandboxRecord {
    /// Of its own process, where it has one.
    pub fn own_cgroup(&self) -> String {
        format!("{}/{}", self.cgroup, self.id)
    }
}

/// All that the shim needs to know to start a container.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ContainerRecord {
    pub id: ContainerId,
    pub sandbox: SandboxRecord,
    /// The sandbox's directory.
    pub sandbox_directory: std::path::PathBuf,
    pub config: ContainerConfig,
    pub created_at: Timestamp,
    pub image_id: String,
    pub image: ImageConfig,
    pub layers_count: usize,
    /// Where the shim itself goes, out of the agent's cgroup.
    pub shim_cgroup: String,
}

impl ContainerRecord {
    pub fn cgroup(&self) -> String {
        format!("{}/{}", self.sandbox.cgroup, self.id)
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StartedRecord {
    pub pid: i32,
    pub started_at: Timestamp,
    #[serde(default)]
    pub user: Option<ContainerUser>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ExitRecord {
    pub exit_code: i32,
    pub reason: String,
    #[serde(default)]
    pub message: String,
    pub finished_at: Timestamp,
}

pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// None when there is no such file.
pub fn read_if_there<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match read(path) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A reader sees the old content or the new, also after a power cut.
pub fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_data()?;
    fs::rename(&temporary, path)
}

/// Short names for layers, `l/0` for the topmost: hundreds of them fit into a mount's options.
pub fn link_layers(directory: &Path, layers: &[PathBuf]) -> io::Result<()> {
    for (number, layer) in layers.iter().enumerate() {
        let layer = fs::canonicalize(layer)?;
        std::os::unix::fs::symlink(layer, directory.join(format!("l/{number}")))?;
    }
    Ok(())
}
