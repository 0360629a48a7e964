//! How much a layer may still write. What little input expands to, in one large file, in many
//! small ones or in copies of one, shall not take the disk from everybody else.

use super::LAYER_BYTES_MAX;
use std::fs::File;
use std::io;
use std::path::Path;

/// Written between two looks at the disk.
const UNSEEN_BYTES_MAX: u64 = 1 << 20;
/// And at most this many entries, each of which takes a place of its own.
const UNSEEN_ENTRIES_MAX: u64 = 32;
/// Left free by layers, or this part of a small disk.
const KEPT_BYTES_MAX: u64 = 256 << 20;
const KEPT_PART: u64 = 20;

#[derive(Debug, Default)]
pub struct Room {
    /// Since the last look at the disk.
    unseen_bytes: u64,
    written_bytes: u64,
}

impl Room {
    /// Asked before anything of that size is written below `root`.
    pub fn take(&mut self, root: &Path, size_bytes: u64) -> io::Result<()> {
        self.written_bytes = self.written_bytes.saturating_add(size_bytes);
        let weight = size_bytes.max(UNSEEN_BYTES_MAX / UNSEEN_ENTRIES_MAX);
        self.unseen_bytes = self.unseen_bytes.saturating_add(weight);
        if self.unseen_bytes >= UNSEEN_BYTES_MAX {
            self.unseen_bytes = 0;
            look(root, size_bytes)?;
        }
        // After the look: a disk that is too small is the plainer word.
        match self.written_bytes > LAYER_BYTES_MAX {
            true => Err(io::Error::other(format!(
                "more than {LAYER_BYTES_MAX} bytes"
            ))),
            false => Ok(()),
        }
    }
}

fn look(root: &Path, size_bytes: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(File::open(root)?)?;
    let (free, all) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
    let kept = (all / KEPT_PART).min(KEPT_BYTES_MAX);
    // A file system without a number of inodes says that it has none.
    let has_inodes = disk.f_files == 0 || disk.f_favail > disk.f_files / KEPT_PART;
    match has_inodes && size_bytes.saturating_add(kept) <= free {
        true => Ok(()),
        false => Err(rustix::io::Errno::NOSPC.into()),
    }
}
