//! What a directory holds, counted as `du` does: blocks in use, each hard link once.
//!
//! Containers write below these directories while they are walked: no link is followed, no other
//! file system entered, and nothing outside is ever opened. Bounded; what is beyond the bound is
//! not counted, so that the numbers are never too high.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// How far one walk goes.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// With more files a directory takes longer than anybody waits.
    entries: u64,
    /// Of memory for directories yet to be read; what is in one more is not counted.
    pending_bytes: usize,
}

const BOUNDS: Bounds = Bounds {
    entries: 1_000_000,
    pending_bytes: 32 << 20,
};
/// Files with several names that are remembered, to be counted once.
const HARD_LINKS_MAX: usize = 65_536;
/// As the kernel counts `st_blocks`.
const BLOCK_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DiskUse {
    pub bytes: u64,
    pub inodes: u64,
}

impl DiskUse {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

/// Blocks: not for the async threads. What is not there uses nothing.
pub fn measure(path: &Path) -> io::Result<DiskUse> {
    measure_up_to(path, BOUNDS)
}

fn measure_up_to(path: &Path, bounds: Bounds) -> io::Result<DiskUse> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(root) => root,
        Err(rustix::io::Errno::NOENT) => return Ok(DiskUse::default()),
        Err(errno) => return Err(errno.into()),
    };
    let top = rustix::fs::fstat(&root)?;
    let mut walk = Walk {
        root,
        device: top.st_dev,
        used: DiskUse::default(),
        links: HashSet::new(),
        entries_left: bounds.entries,
        pending: Vec::new(),
        pending_bytes_left: bounds.pending_bytes,
    };
    walk.count(&top);
    if FileType::from_raw_mode(top.st_mode) == FileType::Directory {
        walk.later(&Rc::from(Path::new("")), c".");
    }
    while let Some(pending) = walk.pending.pop() {
        walk.pending_bytes_left += pending.bytes();
        // What goes away or cannot be entered meanwhile is not counted.
        let _ = walk.enter(pending);
    }
    Ok(walk.used)
}

struct Walk {
    root: OwnedFd,
    device: u64,
    used: DiskUse,
    links: HashSet<u64>,
    entries_left: u64,
    pending: Vec<Pending>,
    pending_bytes_left: usize,
}

/// A directory yet to be read. The path of its parent, from the root on, is shared with others.
struct Pending {
    parent: Rc<Path>,
    name: Box<OsStr>,
}

impl Pending {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

impl Walk {
    fn later(&mut self, parent: &Rc<Path>, name: &CStr) {
        let pending = Pending {
            parent: parent.clone(),
            name: OsStr::from_bytes(name.to_bytes()).into(),
        };
        if let Some(left) = self.pending_bytes_left.checked_sub(pending.bytes()) {
            self.pending_bytes_left = left;
            self.pending.push(pending);
        }
    }

    fn enter(&mut self, Pending { parent, name }: Pending) -> io::Result<()> {
        let directory: Rc<Path> = parent.join(&*name).into();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let opened = rustix::fs::openat2(&self.root, &*directory, flags, Mode::empty(), resolve)?;
        let mut entries = Dir::new(opened)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Some(left) = self.entries_left.checked_sub(1) else {
                self.pending.clear();
                return Ok(());
            };
            self.entries_left = left;
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let Ok(stat) = rustix::fs::statat(entries.fd()?, name, flags) else {
                continue;
            };
            if stat.st_dev != self.device {
                continue;
            }
            self.count(&stat);
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.later(&directory, name);
            }
        }
        Ok(())
    }

    fn count(&mut self, stat: &rustix::fs::Stat) {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if stat.st_nlink > 1 && !is_directory {
            if self.links.contains(&stat.st_ino) {
                return;
            }
            if self.links.len() < HARD_LINKS_MAX {
                self.links.insert(stat.st_ino);
            }
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        self.used = self.used.plus(DiskUse {
            bytes: blocks.saturating_mul(BLOCK_BYTES),
            inodes: 1,
        });
    }
}

/// Space and files of the file system that holds a path.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    pub total_bytes: i64,
    pub free_bytes: i64,
    /// 0 on file systems that do not count.
    pub files: i64,
    pub free_files: i64,
}

pub fn file_system(path: &Path) -> Option<FileSystem> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(stat.f_frsize)).ok();
    Some(FileSystem {
        total_bytes: bytes(stat.f_blocks)?,
        free_bytes: bytes(stat.f_bavail)?,
        files: i64::try_from(stat.f_files).ok()?,
        free_files: i64::try_from(stat.f_favail).ok()?,
    })
}

/// Two paths of one device share their space.
pub fn device(path: &Path) -> Option<u64> {
    rustix::fs::statat(CWD, path, AtFlags::empty())
        .ok()
        .map(|stat| stat.st_dev)
}

#[cfg(test)]
mod tests;
