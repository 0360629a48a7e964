//! Paths below a directory that others may write to while they are used.
//!
//! Links count as long as they lead to what is below the directory. Nothing outside of it is ever
//! opened or made: a path is first freed of links, and what is then left is walked without
//! following any, so that a part that somebody turns into a link meanwhile is an error.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// As chmod takes it: permissions, and the bits for user, group and sticky.
const MODE_BITS: u32 = 0o7777;

#[derive(Debug, thiserror::Error)]
pub enum BeneathError {
    #[error("it leads out of its directory")]
    Outside,
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
}

impl From<Errno> for BeneathError {
    fn from(errno: Errno) -> Self {
        Self::Unreachable(errno.into())
    }
}

/// Opens what is at the path, be it a file or a directory, for mounting and not for reading.
pub fn open(root: &Path, path: &Path) -> Result<OwnedFd, BeneathError> {
    let root = root.canonicalize()?;
    let full = below(&root, path)?.canonicalize()?;
    open_plain(&root, &full)
}

/// As [`open`]; makes the directories that are missing, with the mode of `root`.
pub fn open_or_make(root: &Path, path: &Path) -> Result<OwnedFd, BeneathError> {
    match open(root, path) {
        Err(BeneathError::Unreachable(error)) if error.kind() == io::ErrorKind::NotFound => {
            make(root, path)?;
            open(root, path)
        }
        opened => opened,
    }
}

/// Joined, when the path says nowhere to go up or to begin elsewhere.
fn below(root: &Path, path: &Path) -> Result<PathBuf, BeneathError> {
    let mut parts = path.components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    is_plain
        .then(|| root.join(path))
        .ok_or(BeneathError::Outside)
}

/// Both are free of links.
fn open_plain(root: &Path, full: &Path) -> Result<OwnedFd, BeneathError> {
    let inner = full.strip_prefix(root).map_err(|_| BeneathError::Outside)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let plain = ResolveFlags::NO_SYMLINKS;
    let root = rustix::fs::openat2(CWD, root, flags, Mode::empty(), plain)?;
    if inner.as_os_str().is_empty() {
        return Ok(root);
    }
    let plain = plain | ResolveFlags::BENEATH;
    Ok(rustix::fs::openat2(
        root,
        inner,
        flags,
        Mode::empty(),
        plain,
    )?)
}

fn make(root: &Path, path: &Path) -> Result<(), BeneathError> {
    let root = root.canonicalize()?;
    let full = below(&root, path)?;
    let (existing, missing) = split(&full)?;
    let mut at = open_plain(&root, &existing)?;
    let mode = rustix::fs::statat(CWD, &root, rustix::fs::AtFlags::empty())?.st_mode & MODE_BITS;
    for name in missing.iter().rev() {
        at = make_one(&at, name, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

/// What is there of a path, free of links, and the names that are not, the last one first.
fn split(full: &Path) -> Result<(PathBuf, Vec<&OsStr>), BeneathError> {
    let mut missing = Vec::new();
    for prefix in full.ancestors() {
        match prefix.canonicalize() {
            Ok(existing) => return Ok((existing, missing)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.extend(prefix.file_name());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::NOENT.into())
}

/// Another container of the pod may make it at the same time.
fn make_one(parent: impl AsFd, name: &OsStr, mode: Mode) -> Result<OwnedFd, BeneathError> {
    let is_new = match rustix::fs::mkdirat(&parent, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno.into()),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let plain = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let made = rustix::fs::openat2(&parent, name, flags, Mode::empty(), plain)?;
    if is_new {
        // Not left to the umask.
        rustix::fs::fchmod(&made, mode)?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests;
