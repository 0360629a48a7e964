//! Files that are replaced as a whole: a reader finds the old content or the new, also after a
//! power cut.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Waits for the disk. The directory has to be there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let temporary = directory.join(format!("{}{}", unfinished(path), std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(directory)?.sync_all()
}

/// What names of unfinished files begin with.
fn unfinished(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.")
}

/// Removes the file, and what writers of it left unfinished when they were killed. Nobody writes it
/// meanwhile. No such file is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let missing_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    missing_is_fine(fs::remove_file(path))?;
    let (directory, unfinished) = (path.parent().unwrap_or(Path::new("/")), unfinished(path));
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let entry = entry?;
        let is_left = entry.file_name().to_string_lossy().starts_with(&unfinished);
        if is_left {
            missing_is_fine(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}
