//! Files that hold secrets: whole or not at all, on disk when this returns, and of mode 0600 from
//! their first byte.
//!
//! Invariant: what is written first is a new file under a name that nobody can foresee. Whatever
//! else lies in the directory, a link or somebody's file, is neither written through nor removed;
//! a link that has the name itself is replaced, not followed.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MODE: u32 = 0o600;

/// The directory must be there.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut beside = tempfile::Builder::new()
        .prefix(".coracle-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(directory)?;
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
