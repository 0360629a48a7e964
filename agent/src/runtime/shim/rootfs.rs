//! The container's root: its image's layers and a directory for changes, through overlayfs.
//!
//! Mounted in a mount namespace of the container's own: nothing to unmount when it ends, and
//! nothing left over when anything is killed.

use super::ShimError;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The kernel takes one page of options.
const OPTIONS_BYTES_MAX: usize = 4095;

/// A mount namespace of this process's own, which still follows the host's.
pub fn leave_mounts() -> Result<(), ShimError> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(ShimError::io("cannot make a mount namespace"))?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none)
        .map_err(ShimError::io("cannot detach the mount namespace"))
}

/// Called with the container's directory as the working directory: the short names of the
/// layers (`l/0` is the topmost one) are what lets hundreds of them fit.
pub fn mount_here(layers_count: usize, layers: &str) -> Result<(), ShimError> {
    let lower = match layers_count {
        0 => "l".to_owned(), // An image of no layers: an empty directory.
        count => (0..count)
            .map(|n| format!("{layers}/{n}"))
            .collect::<Vec<_>>()
            .join(":"),
    };
    let options = format!("lowerdir={lower},upperdir=upper,workdir=work");
    if options.len() > OPTIONS_BYTES_MAX {
        return Err(ShimError::Failed(format!(
            "an image of {layers_count} layers is too much"
        )));
    }
    mount(
        Some("overlay"),
        "rootfs",
        Some("overlay"),
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .map_err(ShimError::io("cannot mount the root file system"))
}

/// Makes the working directory if the image lacks it, as runc does.
pub fn make_inside(root: &Path, directory: &Path, owner: u32) -> Result<(), ShimError> {
    let failed = || ShimError::io(format!("cannot make the directory {}", directory.display()));
    let root = File::open(root).map_err(failed())?;
    let mut at = PathBuf::new();
    for part in directory.components() {
        match part {
            Component::Normal(part) => at.push(part),
            Component::ParentDir => drop(at.pop()),
            _ => continue,
        }
        let Some(name) = at.file_name() else { continue };
        let parent = at.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = open_inside(&root, parent.unwrap_or(Path::new(".")), OFlags::PATH);
        let parent = parent.map_err(failed())?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(&parent, name, Some(user), Some(group), flags)
                    .map_err(|errno| failed()(io::Error::from(errno)))?;
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed()(io::Error::from(errno))),
        }
    }
    Ok(())
}

/// Links are followed as a process inside would follow them.
fn open_inside(root: &File, path: &Path, flags: OFlags) -> std::io::Result<File> {
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(root, path, flags, Mode::empty(), inside)?.into())
}

/// A file inside the root, its links resolved there too. Empty when there is none.
pub fn read_inside(root: &Path, path: &str, bytes_max: u64) -> String {
    let read = || -> std::io::Result<String> {
        let file = open_inside(
            &File::open(root)?,
            Path::new(path),
            OFlags::RDONLY | OFlags::NONBLOCK,
        )?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}
