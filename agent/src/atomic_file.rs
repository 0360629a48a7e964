//! Files that are replaced as a whole: a reader finds the old content or the new, also after a
//! power cut.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Waits for the disk. The directory has to be there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(directory)?.sync_all()
}
