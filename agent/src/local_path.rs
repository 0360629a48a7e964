//! Directories for volumes that are made of this node's disk.
//!
//! Each is named like its volume and lies right below one directory of the node's. It is made when
//! the first pod comes, and removed when the API server asks for that, which it does once the
//! volume is being deleted. Never removes anything elsewhere: names have no slash, links are not
//! followed, and what has something mounted below it stays.

use crate::{mounts, tree};
use coracle_client::volumes::{LOCAL_PATH, PROVISIONED_BY, annotation};
use k8s_openapi::api::core::v1::PersistentVolume;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of the directory of all volumes: pods reach theirs by a mount.
const MODE_ALL: u32 = 0o700;
/// Of each volume: whoever a pod runs as may write to it.
const MODE: u32 = 0o777;
const NAME_BYTES_MAX: usize = 253;

static MAKING: Mutex<()> = Mutex::new(());

#[derive(Debug, Default)]
pub struct Directories {
    /// Where all of them are. None: this node has no place for any.
    pub all: Option<PathBuf>,
    /// One removal at a time. Shared, so that one whose asker is gone keeps its turn to the end.
    pub removals: Arc<tokio::sync::Mutex<()>>,
}

impl Directories {
    pub fn new(all: Option<PathBuf>) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("{0:?} is no name of a volume")]
    Name(String),
    #[error("this node has no place for volumes")]
    NoPlace,
    #[error("something is mounted at {}", .0.display())]
    Mounted(PathBuf),
    #[error("cannot {action} {}", path.display())]
    Disk {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

fn disk(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RemoveError {
    let path = path.to_owned();
    move |source| RemoveError::Disk {
        action,
        path,
        source,
    }
}

/// A name of an object, and thus no way out of a directory.
fn is_plain(name: &str) -> bool {
    let is_known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_known)
        && !name.starts_with('.')
}

/// Where a volume that was made here has its directory.
pub fn place(all: Option<&Path>, volume: &PersistentVolume) -> Option<PathBuf> {
    let name = volume
        .metadata
        .name
        .as_deref()
        .filter(|name| is_plain(name))?;
    let path = &volume.spec.as_ref()?.local.as_ref()?.path;
    let is_own = annotation(&volume.metadata, PROVISIONED_BY) == Some(LOCAL_PATH);
    let place = all?.join(name);
    (is_own && Path::new(path) == place).then_some(place)
}

/// May be repeated; one that is there stays as it is. It is there with its mode or not at all.
pub fn make(place: &Path) -> io::Result<()> {
    // Of several pods one makes it: what others are in already is never replaced.
    let _turn = MAKING.lock();
    if is_there(place)? {
        return Ok(());
    }
    let (Some(all), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(MODE_ALL).create(all)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    make_by_way_of(&all.join(hidden), place)
}

/// A link, or what else is no directory, is an error: nobody but this node makes anything there.
fn is_there(place: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// `hidden` is no name of a volume, and may be left of a start that was cut off.
fn make_by_way_of(hidden: &Path, place: &Path) -> io::Result<()> {
    if !is_there(hidden)? {
        fs::create_dir(hidden)?;
    }
    // Whatever the mask of this process is.
    fs::set_permissions(hidden, fs::Permissions::from_mode(MODE))?;
    fs::rename(hidden, place)
}

/// May be repeated; one that is gone is done.
pub fn remove(all: Option<&Path>, name: &str) -> Result<(), RemoveError> {
    if !is_plain(name) {
        return Err(RemoveError::Name(name.to_owned()));
    }
    let place = all.ok_or(RemoveError::NoPlace)?.join(name);
    match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(disk("look at", &place)(error)),
        // What it points to is somebody else's.
        Ok(meta) if !meta.is_dir() => {
            return fs::remove_file(&place).map_err(disk("remove", &place));
        }
        Ok(_) => {}
    }
    let mounted = mounts::below(&place).map_err(disk("look below", &place))?;
    if let Some(mounted) = mounted.into_iter().next() {
        return Err(RemoveError::Mounted(mounted.point));
    }
    match tree::remove(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk("remove", &place)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
