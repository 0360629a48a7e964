//! `vol_data.json`: what a driver was asked for at a place, written before it is asked. The names
//! are the kubelet's.

use crate::atomic_file;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

pub const FILE: &str = "vol_data.json";

pub const SPEC_VOLUME: &str = "specVolID";
pub const HANDLE: &str = "volumeHandle";
pub const DRIVER: &str = "driverName";
pub const NODE: &str = "nodeName";
pub const ATTACHMENT: &str = "attachmentID";
pub const LIFECYCLE: &str = "volumeLifecycleMode";

pub type Data = BTreeMap<&'static str, String>;

/// In the directory above the one that is mounted.
pub fn save(directory: &Path, data: &Data) -> io::Result<()> {
    let text = format!("{}\n", serde_json::to_string(data)?);
    atomic_file::write(&directory.join(FILE), text.as_bytes(), 0o644)
}

pub fn exists(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

/// Removes a place where nothing is mounted and nothing is kept, and what was written of it. One
/// where something is mounted stays as it is.
pub fn remove(place: &Path) -> io::Result<()> {
    if crate::mounts::is_point(place)? {
        return Ok(());
    }
    let missing_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    missing_is_fine(fs::remove_dir(place))?;
    let Some(directory) = place.parent() else {
        return Ok(());
    };
    atomic_file::remove(&directory.join(FILE))?;
    missing_is_fine(fs::remove_dir(directory))
}
