//! Removes directories that pods and images have filled.
//!
//! However deep a tree is, the stack and the number of open files are bounded: what lies in a
//! directory below is moved up to the top first, so that two levels are open at a time. Never
//! follows a link, never enters what is mounted below, and thus never leaves the directory.

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Of directories that nothing can be moved out of, like subvolumes: so many below one another.
const FENCED_MAX: u32 = 16;

/// As [`fs::remove_dir_all`]: a link goes itself, one that is missing is an error. May be repeated
/// after any failure.
pub fn remove(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(top) => top,
        Err(errno @ (Errno::NOTDIR | Errno::LOOP)) => {
            return match fs::symlink_metadata(path)?.is_symlink() {
                true => fs::remove_file(path),
                false => Err(errno.into()),
            };
        }
        Err(errno) => return Err(errno.into()),
    };
    empty(top, FENCED_MAX)?;
    fs::remove_dir(path)
}

/// Each round but the last moves at least one directory up, out of a finite tree; whoever adds to
/// it meanwhile makes it fail.
fn empty(top: OwnedFd, fenced_max: u32) -> io::Result<()> {
    let mut entries = Dir::new(top)?;
    let mut numbers = 0..u64::MAX;
    loop {
        let before = numbers.start;
        entries.rewind();
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            let top = entries.fd()?;
            if is_removed(top, name)? {
                continue;
            }
            let Some(below) = open(top, name)? else {
                continue;
            };
            move_up(below, top, &mut numbers, fenced_max)?;
            remove_empty(top, name)?;
        }
        if numbers.start == before {
            return Ok(());
        }
    }
}

/// Files go, and directories that are not empty are in `top` afterwards.
fn move_up(
    below: OwnedFd,
    top: impl AsFd,
    numbers: &mut impl Iterator<Item = u64>,
    fenced_max: u32,
) -> io::Result<()> {
    let mut entries = Dir::new(below)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        let below = entries.fd()?;
        if is_removed(below, name)? {
            continue;
        }
        match move_to(below, name, &top, numbers) {
            Err(Errno::XDEV) if fenced_max > 0 => {
                if let Some(fenced) = open(below, name)? {
                    empty(fenced, fenced_max - 1)?;
                    remove_empty(below, name)?;
                }
            }
            moved => moved?,
        }
    }
    Ok(())
}

fn move_to(
    below: impl AsFd,
    name: &CStr,
    top: impl AsFd,
    numbers: &mut impl Iterator<Item = u64>,
) -> Result<(), Errno> {
    for number in numbers {
        let free = CString::new(format!(".coracle-removed-{number}")).map_err(|_| Errno::INVAL)?;
        match rustix::fs::renameat(&below, name, &top, &free) {
            // Whoever made the tree may have used the name, too; each number is tried once.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(Errno::NOENT) => return Ok(()),
            moved => return moved,
        }
    }
    Err(Errno::MLINK)
}

/// False for a directory with something in it.
fn is_removed(directory: impl AsFd, name: &CStr) -> io::Result<bool> {
    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(true);
    }
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    match rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn remove_empty(directory: impl AsFd, name: &CStr) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// None when it is gone meanwhile.
fn open(directory: impl AsFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match rustix::fs::openat2(directory, name, flags, Mode::empty(), inside) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests;
