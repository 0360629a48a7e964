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
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path, |file| file.write_all(content.as_ref()))
}

/// The same with what `fill` writes.
pub fn create<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut beside = tempfile::Builder::new()
        .prefix(".coracle-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(directory)?;
    let filled = fill(beside.as_file_mut())?;
    beside.as_file().sync_all()?;
    beside.persist(path).map_err(io::Error::from)?;
    File::open(directory)?.sync_all()?;
    Ok(filled)
}

#[cfg(test)]
mod tests;
