//! `emptyDir`: a directory of the node's disk, or of memory with a bound.

use super::{VolumeError, disk};
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use nix::mount::{MsFlags, mount};
use nix::unistd::Gid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Anybody may write to it, as upstream has it.
const MODE: u32 = 0o777;
/// With a group: its files belong to that group.
const MODE_WITH_GROUP: u32 = 0o2777;

pub fn set_up(
    path: &Path,
    source: &EmptyDirVolumeSource,
    group: Option<i64>,
) -> Result<(), VolumeError> {
    fs::create_dir_all(path).map_err(disk("make", path))?;
    if source.medium.as_deref() == Some("Memory") && !is_mount(path) {
        let mut options = "mode=0777".to_owned();
        let limit = source.size_limit.as_ref();
        let limit = limit.and_then(|limit| Quantity::parse(&limit.0).ok());
        if let Some(limit) = limit.filter(|limit| !limit.is_zero()) {
            options.push_str(&format!(",size={}", limit.value()));
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(
            Some("tmpfs"),
            path,
            Some("tmpfs"),
            flags,
            Some(options.as_str()),
        )
        .map_err(|error| disk("mount memory on", path)(error.into()))?;
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

fn is_mount(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    path.parent().and_then(device) != device(path)
}
