//! Snapshot files: the whole current state in one plain file, a small ring of them, and putting
//! one in the place of a store that cannot be trusted.
//!
//! A file of the ring is written beside, synced, renamed.

mod file; // The bytes of one.
mod restore;

pub use file::{
    Frozen, SnapshotContents, SnapshotFacts, SnapshotFileError, check_snapshot, read_snapshot,
};
pub use restore::{RestoreError, Restored, restore_newest_snapshot, restore_snapshot};

use crate::revision::Revision;
use crate::seal::Codec;
use crate::state::State;
use crate::store::{Config, Layout};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A file goes to the disk in parts of this size: one large flush at its end would hold up the
/// flushes of those who write meanwhile.
const SYNC_BYTES: usize = 1024 * 1024;
/// The first after a start comes this soon, for machines that never run long.
const FIRST_AFTER: Duration = Duration::from_secs(5 * 60);

/// How many files were written anew, and which could not be read.
pub(crate) type Resealed = oneshot::Sender<Result<(usize, Vec<PathBuf>), String>>;
pub(crate) type Answer = oneshot::Sender<Result<PathBuf, String>>;

/// Takes snapshots on the writer's behalf.
pub(crate) struct Archive {
    directory: PathBuf,
    every: Duration,
    kept: usize,
    next_at: Option<Instant>,
    last_revision: Revision,
    codec: Codec,
    /// Files are written one after the other: none in an old form once all were written anew.
    writing: Arc<Mutex<()>>,
}

impl Archive {
    pub(crate) fn new(config: &Config, codec: Codec) -> Self {
        let directory = Layout::new(&config.directory).snapshots;
        let newest = files(&directory).unwrap_or_default().pop();
        Self {
            last_revision: newest.map_or(Revision(0), |file| revision_of(&file)),
            directory,
            every: config.snapshot_every,
            kept: config.snapshots_kept.max(1),
            next_at: None,
            codec,
            writing: Arc::default(),
        }
    }

    /// How long until one is due, if one will be.
    pub(crate) fn wait(&self, now: Instant, state: &State) -> Option<Duration> {
        let is_changed = state.revision() > self.last_revision;
        let next = self.next_at.filter(|_| is_changed && !self.every.is_zero());
        next.map(|next| next.saturating_duration_since(now))
    }

    pub(crate) fn tick(&mut self, now: Instant, state: &Arc<State>) {
        if self.every.is_zero() {
            return;
        }
        let first = now + self.every.min(FIRST_AFTER);
        let next = *self.next_at.get_or_insert(first);
        if now >= next && state.revision() > self.last_revision {
            self.next_at = Some(now + self.every);
            self.write(state, None);
        }
    }

    /// What is visible now, for whoever writes it somewhere.
    pub(crate) fn freeze(&self, state: &State) -> Frozen {
        Frozen::of(state, &self.codec)
    }

    /// Writes one off the writer's thread: the maps it reads no longer change.
    pub(crate) fn write(&mut self, state: &Arc<State>, answer: Option<Answer>) {
        let revision = state.revision();
        self.last_revision = revision;
        let frozen = self.freeze(state);
        let (directory, kept) = (self.directory.clone(), self.kept);
        let writing = Arc::clone(&self.writing);
        let work = move || {
            let _writing = writing.lock();
            let written = write_file(&directory, revision, |out| frozen.write(out))
                .and_then(|path| drop_old(&directory, kept).map(|()| path));
            if let Err(error) = &written {
                tracing::error!(%error, "no snapshot was written");
            }
            if let Some(answer) = answer {
                drop(answer.send(written.map_err(|error| error.to_string())));
            }
        };
        spawn(work);
    }

    /// Writes the files anew that are in another form than today's, off the writer's thread.
    pub(crate) fn reseal(&self, answer: Resealed) {
        let (directory, codec) = (self.directory.clone(), self.codec.clone());
        let writing = Arc::clone(&self.writing);
        spawn(move || {
            let _writing = writing.lock();
            let done = reseal(&codec, &directory);
            drop(answer.send(done.map_err(|error| error.to_string())));
        });
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("store-snapshot".to_owned());
    if let Err(error) = thread.spawn(work) {
        tracing::error!(%error, "no snapshot was written");
    }
}

fn reseal(codec: &Codec, directory: &Path) -> std::io::Result<(usize, Vec<PathBuf>)> {
    let all = match files(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let (mut written, mut unreadable) = (0, Vec::new());
    for file in all {
        match read_file(codec, &file) {
            Ok(read) if read.is_current => {}
            Ok(read) => {
                let (revision, count) = (read.revision, read.entries.len() as u64);
                let entries = read.entries.into_iter();
                write_file(directory, revision, |out| {
                    file::write(out, codec, revision, count, entries)
                })?;
                written += 1;
            }
            Err(error) => {
                tracing::warn!(%error, "a snapshot is left as it is");
                unreadable.push(file);
            }
        }
    }
    Ok((written, unreadable))
}

fn write_file(
    directory: &Path,
    revision: Revision,
    write: impl FnOnce(&mut BufWriter<Syncing>) -> std::io::Result<()>,
) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(directory)?;
    let path = directory.join(format!("{:020}.snapshot", revision.0));
    let beside = path.with_extension("new");
    let syncing = Syncing {
        file: File::create(&beside)?,
        unsynced: 0,
    };
    let mut file = BufWriter::new(syncing);
    write(&mut file)?;
    file.flush()?;
    file.get_ref().file.sync_all()?;
    std::fs::rename(&beside, &path)?;
    File::open(directory)?.sync_all()?;
    Ok(path)
}

fn drop_old(directory: &Path, kept: usize) -> std::io::Result<()> {
    let mut all = files(directory)?.into_iter().rev().skip(kept);
    all.try_for_each(std::fs::remove_file)
}

/// Brings what is written to the disk a part at a time.
struct Syncing {
    file: File,
    unsynced: usize,
}

impl Write for Syncing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.unsynced += count;
        if self.unsynced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Files are named after their revision.
fn revision_of(file: &Path) -> Revision {
    let name = file.file_stem().and_then(|name| name.to_str());
    Revision(name.and_then(|name| name.parse().ok()).unwrap_or(0))
}

/// Snapshot files, oldest first.
fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "snapshot")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a file of the ring whole and checks all of it.
fn read_file(codec: &Codec, path: &Path) -> Result<SnapshotContents, RestoreError> {
    let read = || {
        let file = File::open(path).map_err(SnapshotFileError::Io)?;
        let mut input = BufReader::new(file);
        let contents = file::contents(&mut input, codec)?;
        match input.read(&mut [0]).map_err(SnapshotFileError::Io)? {
            0 => Ok(contents),
            _ => Err(SnapshotFileError::Damaged(
                "something follows its end".to_owned(),
            )),
        }
    };
    read().map_err(|error| RestoreError::of(path, error))
}
