//! `emptyDir`: a directory of the node's disk, or of memory with a bound. Also what the volumes
//! with content are kept in.

use super::{VolumeError, disk};
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::unistd::Gid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Anybody may write to it, as upstream has it.
const MODE: u32 = 0o777;
/// With a group: its files belong to that group.
const MODE_WITH_GROUP: u32 = 0o2777;
/// Nobody but the agent writes to it.
const MODE_READ_ONLY: u32 = 0o755;

pub fn set_up(
    path: &Path,
    source: &EmptyDirVolumeSource,
    group: Option<i64>,
) -> Result<(), VolumeError> {
    fs::create_dir_all(path).map_err(disk("make", path))?;
    if source.medium.as_deref() == Some("Memory") {
        let limit = source.size_limit.as_ref();
        let limit = limit.and_then(|limit| Quantity::parse(&limit.0).ok());
        let limit = limit.filter(|limit| !limit.is_zero());
        mount_memory(path, MODE, limit.map(|limit| limit.value()))?;
    }
    let mode = if group.is_some() {
        MODE_WITH_GROUP
    } else {
        MODE
    };
    if let Some(group) = group.and_then(|group| u32::try_from(group).ok()) {
        chown(path, None, Some(Gid::from_raw(group).as_raw())).map_err(disk("change", path))?;
    }
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).map_err(disk("change", path))
}

/// For files that the agent writes and containers read.
pub fn set_up_for_content(path: &Path, is_in_memory: bool) -> Result<(), VolumeError> {
    fs::create_dir_all(path).map_err(disk("make", path))?;
    if is_in_memory {
        mount_memory(path, MODE_READ_ONLY, None)?;
    }
    let permissions = fs::Permissions::from_mode(MODE_READ_ONLY);
    fs::set_permissions(path, permissions).map_err(disk("change", path))
}

fn mount_memory(path: &Path, mode: u32, bytes_max: Option<i64>) -> Result<(), VolumeError> {
    if is_mount(path) {
        return Ok(());
    }
    let size = bytes_max.map_or_else(String::new, |bytes| format!(",size={bytes}"));
    let options = format!("mode={mode:o}{size}");
    // Linux before 6.3 knows no `noswap`: there, what is in memory may get into swap.
    let mounted = match mount_tmpfs(path, &format!("{options},noswap")) {
        Err(Errno::EINVAL) => mount_tmpfs(path, &options),
        mounted => mounted,
    };
    mounted.map_err(|error| disk("mount memory on", path)(error.into()))
}

fn mount_tmpfs(path: &Path, options: &str) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))
}

fn is_mount(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    path.parent().and_then(device) != device(path)
}
