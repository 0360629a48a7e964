//! Where everything is kept: can it be written to, is it there tomorrow, and who has it.

use super::existing;
use super::finding::Finding;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

const CHECK: &str = "data directory";
const STORE: &str = "store";

pub fn check(data_dir: &Path) -> Vec<Finding> {
    let shown = data_dir.display();
    let at = existing(data_dir);
    if !at.is_dir() {
        let remedy = "Choose another --data-dir, or move the file out of the way";
        return vec![Finding::fail(
            CHECK,
            format!("{} is no directory", at.display()),
            remedy,
        )];
    }
    if let Err(error) = try_writing(at) {
        return vec![Finding::fail(
            CHECK,
            format!("{} cannot be written to: {error}", at.display()),
            remedy(&error),
        )];
    }
    let mut findings = Vec::new();
    let is_in_memory = statfs(at).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    findings.push(if is_in_memory {
        Finding::warn(
            CHECK,
            format!("{shown} is in memory"),
            "The cluster is gone when the power is: choose a --data-dir on a disk",
        )
    } else if at == data_dir {
        Finding::ok(CHECK, shown.to_string())
    } else {
        Finding::ok(CHECK, format!("{shown}, which the first start makes"))
    });
    findings.extend(store(&data_dir.join("server/store")));
    findings
}

fn try_writing(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

fn remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "It is mounted read-only, which Linux does to a disk that fails: look at `dmesg`, \
             check the file system, then mount it anew"
        }
        io::ErrorKind::PermissionDenied => "Run as root, or give this user the directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Make room on the disk",
        _ => "Look at `dmesg` for what the disk says",
    }
    .to_owned()
}

/// Its records are checked by every start, which is the one that may have it to itself.
fn store(directory: &Path) -> Option<Finding> {
    let lock = match File::open(directory.join("lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            let found = format!("its lock cannot be read: {error}");
            return Some(Finding::fail(STORE, found, remedy(&error)));
        }
    };
    Some(match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Finding::ok(STORE, "in use by a running server"),
        Err(TryLockError::Error(error)) => {
            Finding::fail(STORE, format!("its lock: {error}"), remedy(&error))
        }
        Ok(()) => {
            drop(lock);
            unused(directory)
        }
    })
}

fn unused(directory: &Path) -> Finding {
    let entries = |path: &Path| fs::read_dir(path).map_or(0, |entries| entries.flatten().count());
    let count = entries(&directory.join("snapshots"));
    let beside = format!("{count} snapshots beside it");
    if directory.join("mark").exists() {
        return Finding::ok(
            STORE,
            format!("at rest; {beside}; a start checks all of it"),
        );
    }
    if entries(&directory.join("database")) == 0 {
        return Finding::ok(STORE, "new");
    }
    let remedy = "`coracle server --restore-snapshot` puts the newest sound snapshot in its place and \
                  keeps what is there aside";
    Finding::fail(STORE, format!("it has lost its mark; {beside}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_none_to_worry_about() {
        let parent = tempfile::tempdir().unwrap();
        let found = check(&parent.path().join("a/b"));
        assert_eq!(found.len(), 1);
        assert_ne!(found[0].verdict, Verdict::Fail, "{found:?}");
        assert!(found[0].found.contains("a/b"), "{found:?}");
        assert!(!parent.path().join("a").exists());
    }

    #[test]
    fn a_file_in_its_place_is_told() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let found = check(&file);
        assert_eq!(found[0].verdict, Verdict::Fail);
        assert!(found[0].found.ends_with("is no directory"), "{found:?}");
    }
}
