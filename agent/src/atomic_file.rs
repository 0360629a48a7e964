//! Files that are replaced as a whole: a reader finds the old content or the new. What is written
//! first is a new file under a name that nobody can foresee, so that writers may meet.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Also after a power cut: waits for the disk. The directory has to be there.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let file = beside(path, bytes, mode)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory(path))?.sync_all()
}

/// Does not wait for the disk: a power cut may leave anything.
pub(crate) fn write_soon(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    beside(path, bytes, mode)?.persist(path)?;
    Ok(())
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Gone with an error.
fn beside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(&unfinished(path))
        .tempfile_in(directory(path))?;
    file.write_all(bytes)?;
    file.as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
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
    let (directory, unfinished) = (directory(path), unfinished(path));
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let entry = entry?;
        let is_left = entry.file_name().to_string_lossy().starts_with(&unfinished);
        if is_left {
            missing_is_fine(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{remove, unfinished, write, write_soon};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn writers_of_one_file_may_meet() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        std::thread::scope(|scope| {
            let writers = [b'a', b'b', b'c', b'd'].map(|letter| {
                let path = &path;
                let repeat = move || (0..50).try_for_each(|_| write(path, &[letter; 100], 0o600));
                scope.spawn(repeat)
            });
            for writer in writers {
                writer.join().unwrap().unwrap();
            }
        });
        let content = fs::read(&path).unwrap();
        assert_eq!(content, vec![content[0]; 100]);
        let left = fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 1, "nothing beside it");
    }

    #[test]
    fn the_mode_is_the_one_that_is_asked_for_and_all_of_it_can_be_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        write(&path, b"1", 0o600).unwrap();
        assert_eq!(mode(), 0o600);
        write_soon(&path, b"2", 0o644).unwrap();
        assert_eq!(mode(), 0o644);
        assert_eq!(fs::read(&path).unwrap(), b"2");
        // As a writer leaves it that is killed.
        let left = scratch.path().join(format!("{}a1b2c3", unfinished(&path)));
        fs::write(left, b"3").unwrap();
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        let nowhere = scratch.path().join("no/such");
        assert!(write(&nowhere, b"", 0o600).is_err());
    }
}
