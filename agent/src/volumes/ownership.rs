//! `fsGroup`: what is in a volume belongs to a group of the pod's, as upstream has it.
//!
//! Links are given to the group and never followed. What cannot be changed is told of in the log
//! and passed over: a volume may hold files that nobody can change.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const READ_WRITE: u32 = 0o660;
const READ_ONLY: u32 = 0o440;
const ENTER: u32 = 0o110;
const SET_GROUP: u32 = 0o2000;

/// Directories below one another, each of which is open while what is in it is changed: an agent
/// may have a thousand files open for all that it does.
const LEVELS_MAX: usize = 256;

/// Whom a volume is to belong to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Owner {
    pub group: u32,
    pub read_only: bool,
    /// `OnRootMismatch`: all is well when the volume's root is.
    pub root_says_all: bool,
}

/// The root comes last: it says that all below it was changed.
pub fn give(root: &Path, owner: Owner) -> io::Result<()> {
    let root = rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&root)?;
    if owner.root_says_all && is_given(&stat, owner) {
        return Ok(());
    }
    walk(root, stat, owner)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn is_given(root: &Stat, owner: Owner) -> bool {
    let wanted = bits(true, owner);
    let is_directory = kind(root) == FileType::Directory;
    is_directory && root.st_gid == owner.group && root.st_mode & wanted == wanted
}

fn bits(is_directory: bool, owner: Owner) -> u32 {
    let access = if owner.read_only {
        READ_ONLY
    } else {
        READ_WRITE
    };
    match is_directory {
        true => access | ENTER | SET_GROUP,
        false => access,
    }
}

/// A directory whose entries are gone through.
struct Level {
    stat: Stat,
    entries: Dir,
}

impl Level {
    fn open(directory: impl AsFd, stat: Stat) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
        let entries = Dir::new(readable)?;
        Ok(Self { stat, entries })
    }
}

/// By descriptors: other pods may put links in the place of directories meanwhile. Each directory
/// is changed after all that is in it.
fn walk(root: OwnedFd, stat: Stat, owner: Owner) -> io::Result<()> {
    if kind(&stat) != FileType::Directory {
        change(&root, &stat, owner);
        return Ok(());
    }
    let mut open = vec![Level::open(root, stat)?];
    while let Some(level) = open.last_mut() {
        let Some(entry) = level.entries.next() else {
            change(&level.entries.fd()?, &level.stat, owner);
            open.pop();
            continue;
        };
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = level.entries.fd()?;
        let opened = rustix::fs::openat(directory, entry.file_name(), flags, Mode::empty());
        let file = match opened {
            Err(rustix::io::Errno::NOENT) => continue, // Somebody removed it.
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&file)?;
        if kind(&stat) != FileType::Directory {
            change(&file, &stat, owner);
            continue;
        }
        if open.len() >= LEVELS_MAX {
            return Err(io::Error::other(format!(
                "more than {LEVELS_MAX} directories are below one another"
            )));
        }
        open.push(Level::open(file, stat)?);
    }
    Ok(())
}

fn change(file: &(impl AsFd + AsRawFd), stat: &Stat, owner: Owner) {
    let group = Some(Gid::from_raw(owner.group));
    let given = rustix::fs::chownat(file, c"", None, group, AtFlags::EMPTY_PATH);
    let given = given.map_err(io::Error::from).and_then(|()| {
        if kind(stat) == FileType::Symlink {
            return Ok(());
        }
        let is_directory = kind(stat) == FileType::Directory;
        let mode = (stat.st_mode & 0o7777) | bits(is_directory, owner);
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(itself, fs::Permissions::from_mode(mode))
    });
    if let Err(error) = given {
        tracing::warn!(%error, "a file of a volume does not change its group");
    }
}

#[cfg(test)]
mod tests;
