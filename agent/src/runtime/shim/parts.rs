//! Mounts of a part of a directory, which containers may write to while this one starts.
//!
//! A name that was found to be good may lead elsewhere when it is mounted. What was opened does
//! not change: it is bound to a place that nobody else can reach, in the mount namespace of the
//! container's own, and that place is what the container has mounted.

use super::ShimError;
use crate::beneath;
use crate::runtime::contract::Mount;
use crate::runtime::record::{ContainerRecord, PARTS};
use nix::mount::{MsFlags, mount};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The record, in which no mount has a sub path any more. Called in the new mount namespace.
pub fn hold(directory: &Path, record: &ContainerRecord) -> Result<ContainerRecord, ShimError> {
    let mut record = record.clone();
    let directory = directory.join(PARTS);
    for (number, mount) in record.config.mounts.iter_mut().enumerate() {
        if mount.sub_path.as_os_str().is_empty() {
            continue;
        }
        let place = directory.join(number.to_string());
        let shown = format!("cannot mount the subPath {}", mount.sub_path.display());
        bind(mount, &place).map_err(ShimError::io(shown))?;
        mount.host_path = place;
        mount.sub_path = Default::default();
    }
    Ok(record)
}

fn bind(asked: &Mount, place: &Path) -> io::Result<()> {
    let opened = beneath::open(&asked.host_path, &asked.sub_path).map_err(io::Error::other)?;
    let opened = File::from(opened);
    if opened.metadata()?.is_dir() {
        fs::create_dir_all(place)?;
    } else {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        fs::write(place, "")?;
    }
    let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    let none: Option<&str> = None;
    Ok(mount(Some(source.as_str()), place, none, flags, none)?)
}
