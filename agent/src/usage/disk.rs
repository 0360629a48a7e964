//! What a directory holds, counted as `du` does: blocks in use, each hard link once.
//!
//! Containers write below these directories while they are walked: no link is followed, no other
//! file system entered, and nothing outside is ever opened. Bounded; what is beyond the bound is
//! not counted, so that the numbers are never too high.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Files of one walk. With more of them a directory takes longer than anybody waits.
const ENTRIES_MAX: u64 = 1_000_000;
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
    measure_up_to(path, ENTRIES_MAX)
}

fn measure_up_to(path: &Path, entries_max: u64) -> io::Result<DiskUse> {
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
        entries_left: entries_max,
        pending: Vec::new(),
    };
    walk.count(&top);
    if FileType::from_raw_mode(top.st_mode) == FileType::Directory {
        walk.pending.push(PathBuf::from("."));
    }
    while let Some(directory) = walk.pending.pop() {
        // What goes away or cannot be entered meanwhile is not counted.
        let _ = walk.enter(&directory);
    }
    Ok(walk.used)
}

struct Walk {
    root: OwnedFd,
    device: u64,
    used: DiskUse,
    links: HashSet<u64>,
    entries_left: u64,
    /// Directories yet to be read, below the root.
    pending: Vec<PathBuf>,
}

impl Walk {
    fn enter(&mut self, directory: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let opened = rustix::fs::openat2(&self.root, directory, flags, Mode::empty(), resolve)?;
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
                let name = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
                let name: &std::ffi::OsStr = name;
                self.pending.push(directory.join(name));
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
