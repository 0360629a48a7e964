//! Directories and files of the node that a container has mounted.
//!
//! A name that was found to be good may lead elsewhere when it is mounted. What was opened does
//! not change: a copy of it is put at a place that nobody else can reach, in the mount namespace
//! of the container's own, and that place is what the container has mounted.
//!
//! The copy has the propagation that was asked for: libcontainer, which copies it once more, has
//! none to give. What is to come back to the node is copied before that namespace is made, and so
//! stays one with the node's mount; all other copies are slaves of it, or private.

use super::ShimError;
use super::mapped::{self, Tree};
use crate::beneath;
use crate::mounts::{self, Attributes};
use crate::runtime::contract::{Mount, Propagation};
use crate::runtime::record::{ContainerRecord, PARTS};
use crate::runtime::spec::Given;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const DEVICES: &str = "/dev";

/// Copies that are one with the node's mounts, by the number of the container's mount.
pub struct Taken(Vec<(usize, Tree)>);

/// Called in the node's mount namespace.
pub fn take(record: &ContainerRecord) -> Result<Taken, ShimError> {
    let mut taken = Vec::new();
    for (number, asked) in record.config.mounts.iter().enumerate() {
        if asked.propagation == Propagation::Private || !asked.image.is_empty() {
            continue;
        }
        let opened = open(asked).map_err(failed(asked))?;
        check(asked, &opened)?;
        if asked.propagation == Propagation::Bidirectional {
            taken.push((number, mapped::clone(&itself(&opened), true)?));
        }
    }
    Ok(Taken(taken))
}

/// The record, in which no mount has a sub path any more, and what comes over the container's own
/// /dev in the end: libcontainer makes links and nodes there, which must not be the node's. Called
/// in the new mount namespace.
pub fn hold(
    directory: &Path,
    record: &ContainerRecord,
    mut taken: Taken,
) -> Result<(ContainerRecord, Option<Tree>), ShimError> {
    let mut record = record.clone();
    let directory = directory.join(PARTS);
    let (mut kept, mut devices) = (Vec::new(), None);
    let has_own_ids = record.sandbox.config.id_range.is_some();
    let mounts = std::mem::take(&mut record.config.mounts);
    for (number, mut asked) in mounts.into_iter().enumerate() {
        let place = directory.join(number.to_string());
        let at = taken.0.iter().position(|(of, _)| *of == number);
        let tree = match at.map(|at| taken.0.swap_remove(at)) {
            Some((_, tree)) => Some(tree),
            None => copy(&asked)?,
        };
        if let Some(tree) = tree {
            if asked.container_path == Path::new(DEVICES) && !has_own_ids {
                devices = Some(tree);
                continue;
            }
            mapped::attach(&tree, &place)?;
            asked.host_path = place;
            asked.sub_path = PathBuf::new();
        }
        kept.push(asked);
    }
    record.config.mounts = kept;
    Ok((record, devices))
}

/// Devices that libcontainer does not make are mounted. Whoever changes one in the container does not
/// change the node's: only what the device holds can be written.
pub fn add_devices(
    directory: &Path,
    record: &mut ContainerRecord,
    given: &[Given],
) -> Result<(), ShimError> {
    let directory = directory.join(PARTS).join("devices");
    let devices = record.config.devices.iter().zip(given).enumerate();
    let mut bound = Vec::new();
    for (number, (device, given)) in devices.filter(|(_, (_, given))| given.is_bound) {
        let tree = mapped::clone(&device.host_path, false)?;
        let shown = device.host_path.display();
        let sealed = mounts::set_attributes(&tree.file, &Attributes::READ_ONLY, false);
        sealed.map_err(ShimError::io(format!("cannot mount {shown}")))?;
        let place = directory.join(number.to_string());
        mapped::attach(&tree, &place)?;
        bound.push(Mount {
            container_path: given.path.clone(),
            host_path: place,
            ..Mount::default()
        });
    }
    record.config.mounts.extend(bound);
    Ok(())
}

/// None for what libcontainer may well copy by its name: a file, below which nothing is mounted.
fn copy(asked: &Mount) -> Result<Option<Tree>, ShimError> {
    if !asked.image.is_empty() {
        return Ok(None);
    }
    let opened = open(asked).map_err(failed(asked))?;
    let is_directory = opened.metadata().map_err(failed(asked))?.is_dir();
    if asked.sub_path.as_os_str().is_empty() && !is_directory {
        return Ok(None);
    }
    let tree = mapped::clone(&itself(&opened), true)?;
    if asked.propagation == Propagation::Private {
        part(&tree).map_err(failed(asked))?;
    }
    Ok(Some(tree))
}

/// What is mounted on the node later does not show in it.
fn part(tree: &Tree) -> io::Result<()> {
    let private = Attributes {
        propagation: libc::MS_PRIVATE,
        ..Attributes::default()
    };
    mounts::set_attributes(&tree.file, &private, true)
}

fn open(asked: &Mount) -> io::Result<File> {
    if asked.sub_path.as_os_str().is_empty() {
        let mut options = File::options();
        let options = options.read(true).custom_flags(libc::O_PATH);
        return options.open(&asked.host_path);
    }
    let opened = beneath::open(&asked.host_path, &asked.sub_path);
    opened.map(File::from).map_err(io::Error::other)
}

fn itself(opened: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

fn failed(asked: &Mount) -> impl Fn(io::Error) -> ShimError + use<> {
    let action = match asked.sub_path.as_os_str().is_empty() {
        true => format!("cannot mount {}", asked.host_path.display()),
        false => format!("cannot mount the subPath {}", asked.sub_path.display()),
    };
    move |source| ShimError::Io {
        action: action.clone(),
        source,
    }
}

/// Only mounts that are shared spread; in containerd's words.
fn check(asked: &Mount, opened: &File) -> Result<(), ShimError> {
    let mounted = mounts::of(opened).map_err(failed(asked))?;
    let wanted = match asked.propagation {
        Propagation::Bidirectional if !mounted.is_shared => "a shared mount",
        Propagation::HostToContainer if !mounted.is_shared && !mounted.is_slave => {
            "a shared or slave mount"
        }
        _ => return Ok(()),
    };
    let (path, point) = (&asked.host_path, &mounted.point);
    Err(ShimError::Failed(format!(
        "path {path:?} is mounted on {point:?} but it is not {wanted}"
    )))
}
