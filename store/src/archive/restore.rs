//! Puts a snapshot in the place of a store, or where there is none.
//!
//! Invariants: everything of the snapshot is on the disk before anything of the old store moves;
//! what was there is kept beside it. From the moment at which the old store no longer counts until
//! the new one does, the mark promises revisions that no database knows, so that a store whose
//! restoring broke off is refused, and can be restored again.

use super::file::{SnapshotContents, SnapshotFileError};
use super::{files, read_file};
use crate::backend::{Backend, BackendError, SledBackend};
use crate::mark::{Mark, MarkFile};
use crate::revision::Revision;
use crate::seal::{Codec, Seal};
use crate::store::Layout;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Entries written to a new store at a time.
const ENTRIES_PER_BATCH: usize = 1000;
/// Clients may have seen revisions after the snapshot's: what follows begins far beyond them.
const REVISION_GAP: u64 = 1 << 32;

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("there is no snapshot in {}", .directory.display())]
    NoSnapshot { directory: PathBuf },
    #[error("the store in {} is in use by another process", .directory.display())]
    InUse { directory: PathBuf },
    #[error("the snapshot {} cannot be trusted: {why}", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the snapshot {} cannot be opened: {why}", .file.display())]
    Sealed { file: PathBuf, why: String },
    #[error("cannot read or write {}", .path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} says that all revisions are used up: remove it if that is wrong", .mark.display())]
    Exhausted { mark: PathBuf },
    #[error("cannot make the new store: {0}")]
    Store(String),
    #[error("what goes with the store cannot be put in its place")]
    Before(#[source] std::io::Error),
}

impl RestoreError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(super) fn of(file: &Path, error: SnapshotFileError) -> Self {
        let file = file.to_owned();
        match error {
            SnapshotFileError::Io(source) => Self::Io { path: file, source },
            SnapshotFileError::Damaged(why) => Self::Damaged { file, why },
            SnapshotFileError::Sealed(why) => Self::Sealed { file, why },
        }
    }
}

/// What a restoring did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// New revisions are greater than this.
    pub begins: Revision,
    /// Databases that were there, where they are now.
    pub replaced: Vec<PathBuf>,
}

/// Puts the newest snapshot of the ring that can be trusted in the place of the store in
/// `directory`. Gives back which file it was. `seal` opens what is sealed in it; revisions go on
/// beyond `floor` and far beyond all that is known to have been seen, and clients list again.
pub fn restore_newest_snapshot(
    directory: &Path,
    seal: Option<Arc<dyn Seal>>,
    floor: Revision,
) -> Result<PathBuf, RestoreError> {
    let layout = Layout::new(directory);
    let codec = Codec::new(seal);
    let _lock = lock(&layout, directory)?;
    let (file, contents) = newest(&codec, &layout.snapshots)?;
    replace(&layout, &codec, &contents, floor, || Ok(()))?;
    Ok(file)
}

/// The same with a snapshot that was read, also where there is no store yet. `before` puts in place
/// what goes with the store: nothing of the old one counts when it is called, and nothing of the
/// new one yet.
pub fn restore_snapshot(
    directory: &Path,
    contents: &SnapshotContents,
    seal: Option<Arc<dyn Seal>>,
    floor: Revision,
    before: impl FnOnce() -> std::io::Result<()>,
) -> Result<Restored, RestoreError> {
    std::fs::create_dir_all(directory).map_err(RestoreError::io(directory))?;
    let layout = Layout::new(directory);
    let _lock = lock(&layout, directory)?;
    replace(&layout, &Codec::new(seal), contents, floor, before)
}

fn lock(layout: &Layout, directory: &Path) -> Result<File, RestoreError> {
    let locked = layout.lock(Duration::ZERO);
    locked.map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => RestoreError::InUse {
            directory: directory.to_owned(),
        },
        _ => RestoreError::Io {
            path: layout.lock.clone(),
            source: error,
        },
    })
}

fn newest(codec: &Codec, ring: &Path) -> Result<(PathBuf, SnapshotContents), RestoreError> {
    let none = || RestoreError::NoSnapshot {
        directory: ring.to_owned(),
    };
    let all = files(ring).map_err(|_| none())?;
    let mut failed = None;
    for file in all.into_iter().rev() {
        match read_file(codec, &file) {
            Ok(read) => return Ok((file, read)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(none))
}

fn replace(
    layout: &Layout,
    codec: &Codec,
    contents: &SnapshotContents,
    floor: Revision,
    before: impl FnOnce() -> std::io::Result<()>,
) -> Result<Restored, RestoreError> {
    let mark = MarkFile::new(&layout.mark);
    // A mark that cannot be read is a part of what is replaced.
    let seen = mark.read().ok().flatten().unwrap_or_default().reserved;
    let known = contents.revision.max(seen).max(floor);
    let begins = known.0.checked_add(REVISION_GAP).map(Revision);
    let begins = begins.ok_or_else(|| RestoreError::Exhausted {
        mark: layout.mark.clone(),
    })?;
    let fresh = layout.database.with_extension("restored");
    drop(std::fs::remove_dir_all(&fresh));
    fill(codec, &fresh, begins, contents)
        .map_err(|error| RestoreError::Store(error.to_string()))?;
    let promise = Mark {
        reserved: begins,
        content: None,
        database: None,
    };
    mark.write(&promise)
        .map_err(RestoreError::io(&layout.mark))?;
    before().map_err(RestoreError::Before)?;
    let mut there = layout.rewritten();
    there.push(layout.database.clone());
    let mut replaced = Vec::new();
    for old in there.into_iter().filter(|old| old.exists()) {
        let aside = (0..)
            .map(|number| layout.database.with_extension(format!("replaced-{number}")))
            .find(|path| !path.exists())
            .expect("some number is free");
        std::fs::rename(&old, &aside).map_err(RestoreError::io(&old))?;
        replaced.push(aside);
    }
    std::fs::rename(&fresh, &layout.database).map_err(RestoreError::io(&fresh))?;
    layout.sync().map_err(RestoreError::io(&layout.database))?;
    Ok(Restored { begins, replaced })
}

fn fill(
    codec: &Codec,
    directory: &Path,
    begins: Revision,
    contents: &SnapshotContents,
) -> Result<(), BackendError> {
    let mut backend = SledBackend::open(directory, codec.clone())?;
    for batch in contents.entries.chunks(ENTRIES_PER_BATCH) {
        backend.commit(batch)?;
    }
    backend.compact(&[], begins)?;
    backend.reserve(begins)
}
