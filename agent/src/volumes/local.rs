//! Volumes of the node's own that claims stand for: `local` and `hostPath`.
//!
//! A `local` volume is bound to a place of the pod's, so that each pod has it with its own access.
//! What it holds is never removed: a place is only ever removed when it is empty.

use super::ownership::{self, Owner};
use super::{Found, Refusal, VOLUMES, VolumeError, disk};
use crate::local_path;
use crate::mounts::{self, Attributes};
use k8s_openapi::api::core::v1::PersistentVolume;
use libcontainer::syscall::linux::{
    MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME, MOUNT_ATTR_NODEV, MOUNT_ATTR_NODIRATIME,
    MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MOUNT_ATTR_STRICTATIME,
};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

const PLUGIN: &str = "kubernetes.io~local-volume";
const MODE: u32 = 0o750;

fn refused<T>(step: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    let why = why.into();
    Err(Refusal { step, why })
}

const SET_UP: &str = "MountVolume.SetUp failed";

/// How a pod wants a volume.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub volume: &'a PersistentVolume,
    pub read_only: bool,
    pub is_block: bool,
    /// Where volumes that are made of this disk are: their directories come with the first pod.
    pub made_here: Option<&'a Path>,
}

fn name(volume: &PersistentVolume) -> &str {
    volume.metadata.name.as_deref().unwrap_or_default()
}

/// Where containers will find it; nothing is made yet. None for a volume of another kind.
pub fn plan(pod_directory: &Path, wanted: Wanted<'_>) -> Option<Found> {
    let spec = wanted.volume.spec.as_ref()?;
    let name = name(wanted.volume);
    let path = match (&spec.local, &spec.host_path) {
        (Some(local), _) if wanted.is_block => PathBuf::from(&local.path),
        (Some(_), _) => place(pod_directory, name),
        (None, Some(host)) => PathBuf::from(&host.path),
        (None, None) => return None,
    };
    Some(Found {
        name: name.to_owned(),
        path,
        is_device: wanted.is_block,
        read_only: wanted.read_only,
        ..Found::default()
    })
}

fn place(pod_directory: &Path, name: &str) -> PathBuf {
    pod_directory.join(VOLUMES).join(PLUGIN).join(name)
}

/// May be repeated. `owner` is None for a volume that is left as it is: also when another pod has
/// it already.
pub fn set_up(wanted: Wanted<'_>, found: &Found, owner: Option<Owner>) -> Result<(), Refusal> {
    let Some(spec) = wanted.volume.spec.as_ref() else {
        return refused(SET_UP, "the volume has no spec");
    };
    let options = spec.mount_options.as_deref().unwrap_or_default();
    if let Some(host) = &spec.host_path {
        if wanted.is_block {
            let why = "no volume plugin matched";
            return refused("MapVolume.FindMapperPluginBySpec failed", why);
        }
        if !options.is_empty() {
            let why = "Mount options are not supported for this volume type";
            return refused("MountVolume.MountOptionSupport check failed", why);
        }
        let type_ = host.type_.as_deref().unwrap_or_default();
        let checked = super::host_path(&host.path, type_);
        return checked.or_else(|error| refused(SET_UP, error.to_string()));
    }
    let path = spec.local.as_ref().map_or("", |local| &local.path);
    let source = Path::new(path);
    if let Some(place) = local_path::place(wanted.made_here, wanted.volume) {
        let made = local_path::make(&place);
        made.or_else(|error| refused(SET_UP, error.to_string()))?;
    }
    check(source, wanted.is_block)?;
    if wanted.is_block {
        return Ok(());
    }
    let bound = bind(source, &found.path, wanted.read_only, options);
    bound.or_else(|error| refused(SET_UP, error.to_string()))?;
    match owner {
        Some(owner) => {
            ownership::give(&found.path, owner).or_else(|error| refused(SET_UP, error.to_string()))
        }
        None => Ok(()),
    }
}

fn check(source: &Path, is_block: bool) -> Result<(), Refusal> {
    let step = match is_block {
        true => "MapVolume.NewBlockVolumeMapper initialization failed",
        false => "MountVolume.NewMounter initialization failed",
    };
    let is_plain = !source.components().any(|part| part.as_os_str() == "..");
    if !is_plain {
        return refused(SET_UP, format!("invalid path: {}", source.display()));
    }
    match fs::metadata(source) {
        Ok(meta) if is_block && meta.file_type().is_block_device() => Ok(()),
        Ok(meta) if !is_block && meta.is_dir() => Ok(()),
        Ok(_) if is_block => refused(step, format!("{} is no block device", source.display())),
        Ok(_) => refused(step, "only directory and block device are supported"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = source.display().to_string();
            refused(step, format!("path {path:?} does not exist"))
        }
        Err(error) => refused(step, error.to_string()),
    }
}

fn bind(
    source: &Path,
    place: &Path,
    read_only: bool,
    options: &[String],
) -> Result<(), VolumeError> {
    if mounts::is_point(place).map_err(disk("look at", place))? {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(MODE).create(place);
    made.map_err(disk("make", place))?;
    let none = None::<&str>;
    let attributes = attributes(options, read_only).map_err(VolumeError::Content)?;
    let bound = mount(Some(source), place, none, MsFlags::MS_BIND, none);
    bound.map_err(|errno| disk("mount", place)(errno.into()))?;
    restrict(place, attributes)
        .inspect_err(|_| {
            let _ = umount2(place, MntFlags::MNT_DETACH);
        })
        .map_err(disk("mount", place))
}

/// Those that the mount has by its source stay.
fn restrict(place: &Path, attributes: Attributes) -> io::Result<()> {
    if attributes == Attributes::default() {
        return Ok(());
    }
    mounts::set_attributes(&fs::File::open(place)?, &attributes, false)
}

/// Options that a bind mount can have.
fn attributes(options: &[String], read_only: bool) -> Result<Attributes, String> {
    let mut all = Attributes::default();
    all.set |= if read_only { MOUNT_ATTR_RDONLY } else { 0 };
    let words = options.iter().flat_map(|option| option.split(','));
    for word in words.filter(|word| !word.is_empty()) {
        let (set, clear) = match word {
            "ro" => (MOUNT_ATTR_RDONLY, 0),
            "nosuid" => (MOUNT_ATTR_NOSUID, 0),
            "nodev" => (MOUNT_ATTR_NODEV, 0),
            "noexec" => (MOUNT_ATTR_NOEXEC, 0),
            "noatime" => (MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME),
            "relatime" => (0, MOUNT_ATTR__ATIME),
            "strictatime" => (MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME),
            "nodiratime" => (MOUNT_ATTR_NODIRATIME, 0),
            "rw" | "suid" | "dev" | "exec" | "defaults" | "bind" => (0, 0),
            other => return Err(format!("unknown mount option {other:?}")),
        };
        all.set |= set;
        all.clear |= clear;
    }
    Ok(all)
}

/// Unmounts a pod's places, and removes them, empty as they are then.
pub fn take_down(pod_directory: &Path) -> Result<(), VolumeError> {
    let all = pod_directory.join(VOLUMES).join(PLUGIN);
    for entry in fs::read_dir(&all).into_iter().flatten() {
        let place = entry.map_err(disk("read", &all))?.path();
        mounts::unmount_below(&place).map_err(disk("unmount", &place))?;
        fs::remove_dir(&place).map_err(disk("remove", &place))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
