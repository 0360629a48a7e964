//! Mounts of a container with a user namespace: what is root's on the node is its root's.
//!
//! The container's process sets up its own mounts there as a user who may not even see the
//! agent's directory. So all that it needs is opened here, given other ids where it is the
//! pod's, and put below a directory that everybody may pass, in the mount namespace of the
//! container's own; that directory is covered by a tmpfs first, so that nothing of the node shows.

use super::ShimError;
use crate::mounts::{self, Attributes};
use crate::runtime::record::ContainerRecord;
use libcontainer::syscall::linux::MOVE_MOUNT_F_EMPTY_PATH;
use libcontainer::syscall::syscall::create_syscall;
use nix::mount::{MsFlags, mount};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Directories of every Linux; the first that the agent's own is not below.
const COVERS: [&str; 4] = ["/run", "/mnt", "/usr", "/tmp"];
const LAYERS: &str = "lower";
const PLACE: &str = "coracle";
/// Namespaces that are joined by their files.
const NAMESPACES: [&str; 5] = ["user", "net", "uts", "ipc", "pid"];

/// A copy of the mounts at a path that is not attached anywhere.
#[derive(Debug)]
pub struct Tree {
    pub file: OwnedFd,
    is_directory: bool,
}

impl Tree {
    /// Over what is there.
    pub fn cover(&self, place: &Path) -> io::Result<()> {
        let root = File::open("/")?;
        let (tree, flags) = (self.file.as_fd(), MOVE_MOUNT_F_EMPTY_PATH);
        let moved = create_syscall().move_mount(tree, None, root.as_fd(), place.to_str(), flags);
        moved.map_err(io::Error::other)
    }
}

pub fn clone(path: &Path, is_recursive: bool) -> Result<Tree, ShimError> {
    let failed = || ShimError::io(format!("cannot open {}", path.display()));
    let is_directory = fs::metadata(path).map_err(failed())?.is_dir();
    let file = mounts::copy(path, is_recursive).map_err(failed())?;
    Ok(Tree { file, is_directory })
}

/// Files of the node's root are then those of the namespace's root, in this tree's first mount.
fn map(tree: &Tree, namespace: &File, shown: &Path) -> Result<(), ShimError> {
    let attributes = Attributes {
        set: libc::MOUNT_ATTR_IDMAP,
        user_namespace: namespace.as_raw_fd(),
        ..Attributes::default()
    };
    mounts::set_attributes(&tree.file, &attributes, false).map_err(|error| {
        ShimError::Failed(format!(
            "failed to set MOUNT_ATTR_IDMAP on {}: {error} (maybe the filesystem used \
                 doesn't support idmap mounts on this kernel?)",
            shown.display()
        ))
    })
}

pub fn attach(tree: &Tree, place: &Path) -> Result<(), ShimError> {
    let failed = || ShimError::io(format!("cannot mount {}", place.display()));
    let made = match tree.is_directory {
        true => fs::create_dir_all(place),
        false => fs::create_dir_all(place.parent().unwrap_or(place))
            .and_then(|()| File::create(place).map(drop)),
    };
    made.map_err(failed())?;
    let here = File::open(".").map_err(failed())?;
    create_syscall()
        .move_mount(
            tree.file.as_fd(),
            None,
            here.as_fd(),
            place.to_str(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
        .map_err(|error| failed()(io::Error::other(error)))
}

/// Whether what is on the file system of a directory can have other ids.
pub fn probe(directory: &Path, namespace: &File) -> Result<(), ShimError> {
    map(&clone(directory, false)?, namespace, directory)
}

/// Gives the layers the container's ids; answers with the directory that has them by number.
pub fn map_layers(count: usize, namespace: &File) -> Result<&'static str, ShimError> {
    for number in 0..count {
        let layer = PathBuf::from(format!("l/{number}"));
        let tree = clone(&layer, false)?;
        map(&tree, namespace, &layer)?;
        attach(&tree, &Path::new(LAYERS).join(number.to_string()))?;
    }
    Ok(LAYERS)
}

fn cover(directory: &Path) -> Result<PathBuf, ShimError> {
    let covers = COVERS.iter().map(Path::new);
    let mut usable = covers.filter(|cover| cover.is_dir() && !directory.starts_with(cover));
    let cover = usable
        .next()
        .ok_or_else(|| ShimError::Failed("there is no place for the container's root".into()))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), cover, Some("tmpfs"), flags, Some("mode=755"))
        .map_err(ShimError::io(format!("cannot cover {}", cover.display())))?;
    Ok(cover.join(PLACE))
}

/// The record with all places as they are below the cover, and the place of the root.
pub fn stage(
    directory: &Path,
    record: &ContainerRecord,
    namespace: &File,
) -> Result<(ContainerRecord, PathBuf), ShimError> {
    let mut record = record.clone();
    let root = clone(Path::new("rootfs"), true)?;
    let mut shared = Vec::new();
    for kind in NAMESPACES {
        let name = Path::new("ns").join(kind);
        let path = record.sandbox_directory.join(&name);
        if path.exists() {
            shared.push((clone(&path, false)?, name));
        }
    }
    for name in ["shm", "hostname"] {
        let tree = clone(&record.sandbox_directory.join(name), true)?;
        shared.push((tree, PathBuf::from(name)));
    }
    let mut mounts = Vec::new();
    for mount in &record.config.mounts {
        let tree = clone(&mount.host_path, true)?;
        // Overlays cannot be mapped: what is in an image is nobody's, and read as such.
        if mount.image.is_empty() {
            map(&tree, namespace, &mount.host_path)?;
        }
        mounts.push(tree);
    }
    let place = cover(directory)?;
    fs::create_dir_all(&place).map_err(ShimError::io("cannot make the container's place"))?;
    attach(&root, &place.join("rootfs"))?;
    record.sandbox_directory = place.join("sandbox");
    for (tree, name) in shared {
        attach(&tree, &record.sandbox_directory.join(name))?;
    }
    for (number, (tree, mount)) in mounts.iter().zip(&mut record.config.mounts).enumerate() {
        mount.host_path = place.join("mounts").join(number.to_string());
        attach(tree, &mount.host_path)?;
    }
    Ok((record, place.join("rootfs")))
}

/// The root's place exists for a command that is executed later: libcontainer looks for it.
pub fn stage_again(directory: &Path) -> Result<(), ShimError> {
    super::rootfs::leave_mounts()?;
    let place = cover(directory)?.join("rootfs");
    fs::create_dir_all(place).map_err(ShimError::io("cannot make the container's place"))
}
