//! A pod's volumes on this node: `<pods>/<uid>/volumes/<plugin>/<name>`, as the kubelet lays out.
//!
//! A kind of volume is a file below this one with `set_up`; the rest (mounts of containers,
//! taking down) is the same for all. All may be repeated.

pub mod claims; // What a claim stands for. Pure.
pub mod content; // What is written from objects of the API.
mod empty_dir;
pub mod files; // All of a volume's files at once.
pub mod kept; // What came of claims and of drivers' volumes, on disk.
pub mod local; // Volumes of the node's own that claims stand for.
pub mod ownership; // A group that a volume belongs to.

pub use kept::{Found, Kept, OfDriver};

use crate::beneath::{self, BeneathError};
use crate::pods::state;
use crate::{mounts, tree};
use content::Contents;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume, VolumeMount};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// As upstream has it.
const PODS_MODE: u32 = 0o750;

/// Of a pod's directory, what its volumes are in.
pub const VOLUMES: &str = "volumes";

#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    #[error("cannot {action} {path}: {source}")]
    Disk {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("volume {0:?} is of a kind that this node does not know")]
    UnknownKind(String),
    #[error("hostPath type check failed: {path} is not a {expected}")]
    HostPath {
        path: String,
        expected: &'static str,
    },
    #[error("there is no volume {0:?} in the pod")]
    NoSuchVolume(String),
    #[error("cannot use the subPath {path:?}: {source}")]
    SubPath { path: String, source: BeneathError },
    #[error("the file {0:?} would be out of its volume")]
    FilePath(String),
    #[error("{0}")]
    Content(String),
    #[error("the volume {0:?} was not made")]
    NotMade(String),
    #[error("a driver has not let go of {0}")]
    Published(PathBuf),
}

/// Which step failed, as upstream's events name it, and why.
#[derive(Debug, Eq, PartialEq)]
pub struct Refusal {
    pub step: &'static str,
    pub why: String,
}

pub(crate) fn disk(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> VolumeError + use<> {
    let path = path.to_owned();
    move |source| VolumeError::Disk {
        action,
        path,
        source,
    }
}

/// The directory of one pod, below the agent's `pods`.
pub fn pod_directory(pods: &Path, uid: &str) -> PathBuf {
    pods.join(uid)
}

/// Makes the directory of all pods, for root and its group alone: secrets and the files of pods
/// are below it, some of them open to all users.
pub fn make_pods_directory(pods: &Path) -> io::Result<()> {
    fs::create_dir_all(pods)?;
    fs::set_permissions(pods, fs::Permissions::from_mode(PODS_MODE))
}

/// Makes all volumes of the pod; names the first one that cannot be made.
pub fn set_up(
    directory: &Path,
    pod: &Pod,
    contents: &Contents,
    now: Timestamp,
) -> Result<(), (String, VolumeError)> {
    for volume in state::spec(pod).volumes.iter().flatten() {
        set_up_one(directory, pod, volume, contents, now)
            .map_err(|error| (volume.name.clone(), error))?;
    }
    Ok(())
}

/// Writes anew what has changed of the volumes that are written from objects. A pod whose volumes
/// were taken away meanwhile stays without.
pub fn freshen(
    directory: &Path,
    pod: &Pod,
    contents: &Contents,
    now: Timestamp,
) -> Result<(), (String, VolumeError)> {
    if !directory.join(VOLUMES).is_dir() {
        return Ok(());
    }
    let volumes = state::spec(pod).volumes.iter().flatten();
    for volume in volumes.filter(|volume| content::plugin(volume).is_some()) {
        set_up_one(directory, pod, volume, contents, now)
            .map_err(|error| (volume.name.clone(), error))?;
    }
    Ok(())
}

/// The group that all volumes of the pod belong to.
fn group(pod: &Pod) -> Option<i64> {
    let context = state::spec(pod).security_context.as_ref();
    context.and_then(|context| context.fs_group)
}

fn set_up_one(
    directory: &Path,
    pod: &Pod,
    volume: &Volume,
    contents: &Contents,
    now: Timestamp,
) -> Result<(), VolumeError> {
    let group = group(pod);
    if let Some(source) = &volume.empty_dir {
        return empty_dir::set_up(&own_place(directory, volume)?, source, group);
    }
    if content::plugin(volume).is_some() {
        // Nothing is made for what cannot be filled.
        let files = content::files(pod, volume, contents).map_err(VolumeError::Content)?;
        let root = own_place(directory, volume)?;
        empty_dir::set_up_for_content(&root, content::is_in_memory(volume))?;
        let group = group.and_then(|group| u32::try_from(group).ok());
        return files::write(&root, &files, group, now).map(drop);
    }
    if volume.image.is_some() {
        return Ok(()); // The runtime mounts it, in the containers that want it.
    }
    if is_found(volume) {
        return Ok(()); // Made before, with what the server and a driver say.
    }
    if let Some(source) = &volume.host_path {
        return host_path(&source.path, source.type_.as_deref().unwrap_or_default());
    }
    Err(VolumeError::UnknownKind(volume.name.clone()))
}

/// A volume whose place is told by what was kept of it.
pub fn is_found(volume: &Volume) -> bool {
    let has_claim = volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    has_claim || volume.csi.is_some()
}

fn host_path(path: &str, type_: &str) -> Result<(), VolumeError> {
    let file = Path::new(path);
    let expected = match type_ {
        "DirectoryOrCreate" => {
            fs::create_dir_all(file).map_err(disk("make", file))?;
            "directory"
        }
        "Directory" => "directory",
        "FileOrCreate" => {
            if !file.exists() {
                fs::write(file, "").map_err(disk("make", file))?;
            }
            "file"
        }
        "File" => "file",
        _ => return Ok(()),
    };
    let is_right = match expected {
        "directory" => file.is_dir(),
        _ => file.is_file(),
    };
    is_right.then_some(()).ok_or(VolumeError::HostPath {
        path: path.to_owned(),
        expected,
    })
}

/// Where a volume is on the node.
pub fn path(directory: &Path, kept: &Kept, volume: &Volume) -> Result<PathBuf, VolumeError> {
    if let Some(source) = &volume.host_path {
        return Ok(PathBuf::from(&source.path));
    }
    if !is_found(volume) {
        return own_place(directory, volume);
    }
    let found = kept.0.get(&volume.name);
    let found = found.ok_or_else(|| VolumeError::NotMade(volume.name.clone()))?;
    Ok(found.path.clone())
}

/// Of a volume that is made in the pod's directory.
fn own_place(directory: &Path, volume: &Volume) -> Result<PathBuf, VolumeError> {
    let plugin = match content::plugin(volume) {
        Some(plugin) => plugin,
        None if volume.empty_dir.is_some() => "kubernetes.io~empty-dir",
        None => return Err(VolumeError::UnknownKind(volume.name.clone())),
    };
    Ok(directory.join(VOLUMES).join(plugin).join(&volume.name))
}

/// True for volumes that containers only read, whatever their mounts say.
pub fn is_read_only(kept: &Kept, pod: &Pod, name: &str) -> bool {
    let mut volumes = state::spec(pod).volumes.iter().flatten();
    let Some(volume) = volumes.find(|volume| volume.name == name) else {
        return false;
    };
    if is_found(volume) {
        return kept.0.get(name).is_some_and(|found| found.read_only);
    }
    volume.image.is_some() || content::plugin(volume).is_some()
}

/// What a container's mount shows: a place in a directory, or all of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    pub root: PathBuf,
    /// Empty for all. Not to be joined by name: containers may put links there at any time.
    pub sub_path: PathBuf,
}

/// `sub_path` is `subPath`, or `subPathExpr` expanded; made when there is nothing.
pub fn mounted(
    directory: &Path,
    kept: &Kept,
    pod: &Pod,
    mount: &VolumeMount,
    sub_path: &str,
) -> Result<Shown, VolumeError> {
    let volumes = state::spec(pod).volumes.as_deref().unwrap_or_default();
    let volume = volumes.iter().find(|volume| volume.name == mount.name);
    let volume = volume.ok_or_else(|| VolumeError::NoSuchVolume(mount.name.clone()))?;
    let shown = Shown {
        root: path(directory, kept, volume)?,
        sub_path: PathBuf::from(sub_path),
    };
    if !sub_path.is_empty() {
        let opened = beneath::open_or_make(&shown.root, &shown.sub_path);
        opened.map_err(|source| VolumeError::SubPath {
            path: sub_path.to_owned(),
            source,
        })?;
    }
    Ok(shown)
}

/// Unmounts and removes the pod's volumes. Those of drivers must be unpublished.
pub fn clear(directory: &Path) -> Result<(), VolumeError> {
    if let Some(data) = crate::csi::published(directory).into_iter().next() {
        return Err(VolumeError::Published(data));
    }
    local::take_down(directory)?;
    remove(&directory.join(VOLUMES))
}

/// The same, and then all that the pod has here.
pub fn tear_down(directory: &Path) -> Result<(), VolumeError> {
    clear(directory)?;
    remove(directory)
}

fn remove(directory: &Path) -> Result<(), VolumeError> {
    mounts::unmount_below(directory).map_err(disk("unmount what is below", directory))?;
    match tree::remove(directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(disk("remove", directory)(source))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
