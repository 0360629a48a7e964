//! Snapshot files: the whole current state in one plain file, a small ring of them, and putting
//! the newest in the place of a store that cannot be trusted.
//!
//! Layout, numbers big-endian: the line `coracle-store-snapshot 1`, the revision (8), the count of
//! entries (8), then for each entry its revision (8), the length of its record (4) and the record
//! (see `record.rs`); at the end the crc32 of all before (4). Written beside, synced, renamed.

use crate::backend::{Backend, Numbered, SledBackend};
use crate::mark::{Mark, MarkFile};
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::seal::{Codec, DecodeError, Seal};
use crate::state::State;
use crate::store::{Config, Layout};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const MAGIC: &[u8] = b"coracle-store-snapshot 1\n";
/// As many as a person would look at; each is as large as the current state.
const FILES_MAX: usize = 3;
/// The first after a start comes this soon, for machines that never run long.
const FIRST_AFTER: Duration = Duration::from_secs(5 * 60);
/// Entries written to a new store at a time.
const ENTRIES_PER_BATCH: usize = 1000;
/// Clients may have seen revisions after the snapshot's: what follows begins far beyond them.
const REVISION_GAP: u64 = 1 << 32;

/// How many files were written anew, and which could not be read.
pub(crate) type Resealed = oneshot::Sender<Result<(usize, Vec<PathBuf>), String>>;
pub(crate) type Answer = oneshot::Sender<Result<PathBuf, String>>;

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
    #[error("cannot make the new store: {0}")]
    Store(String),
}

/// Takes snapshots on the writer's behalf.
pub(crate) struct Archive {
    directory: PathBuf,
    every: Duration,
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
            next_at: None,
            codec,
            writing: Arc::default(),
        }
    }

    pub(crate) fn tick(&mut self, now: Instant, state: &Arc<State>) {
        let first = now + self.every.min(FIRST_AFTER);
        let next = *self.next_at.get_or_insert(first);
        if now >= next && state.revision() > self.last_revision {
            self.next_at = Some(now + self.every);
            self.write(state, None);
        }
    }

    /// Writes one off the writer's thread: the maps it reads no longer change.
    pub(crate) fn write(&mut self, state: &Arc<State>, answer: Option<Answer>) {
        let revision = state.revision();
        self.last_revision = revision;
        let partitions: Vec<_> = state
            .partitions()
            .into_iter()
            .map(|partition| {
                let map = partition.current.read().1.clone();
                (Arc::clone(&partition.name), map)
            })
            .collect();
        let (directory, codec) = (self.directory.clone(), self.codec.clone());
        let writing = Arc::clone(&self.writing);
        let work = move || {
            let _writing = writing.lock();
            let entries = partitions.iter().flat_map(|(name, map)| {
                map.iter().map(move |(key, entry)| {
                    let record = Record {
                        operation: Operation::Put,
                        partition: Arc::clone(name),
                        key: Arc::clone(key),
                        created: entry.created,
                        previous: None,
                        value: entry.value.clone(),
                    };
                    (entry.modified, record)
                })
            });
            let count = partitions.iter().map(|(_, map)| map.len()).sum::<usize>();
            let written = write_file(&codec, &directory, revision, count as u64, entries);
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
                let count = read.entries.len() as u64;
                let entries = read.entries.into_iter();
                write_file(codec, directory, read.revision, count, entries)?;
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
    codec: &Codec,
    directory: &Path,
    revision: Revision,
    count: u64,
    entries: impl Iterator<Item = Numbered>,
) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(directory)?;
    let path = directory.join(format!("{:020}.snapshot", revision.0));
    let beside = path.with_extension("new");
    let mut file = Summing {
        inner: BufWriter::new(File::create(&beside)?),
        sum: crc32fast::Hasher::new(),
    };
    file.write_all(MAGIC)?;
    file.write_all(&revision.0.to_be_bytes())?;
    file.write_all(&count.to_be_bytes())?;
    for (revision, record) in entries {
        let bytes = codec.encode(&record).map_err(std::io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
        file.write_all(&revision.0.to_be_bytes())?;
        file.write_all(&length.to_be_bytes())?;
        file.write_all(&bytes)?;
    }
    let sum = file.sum.clone().finalize();
    file.write_all(&sum.to_be_bytes())?;
    let inner = file
        .inner
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    inner.sync_all()?;
    std::fs::rename(&beside, &path)?;
    File::open(directory)?.sync_all()?;
    for old in files(directory)?.into_iter().rev().skip(FILES_MAX) {
        std::fs::remove_file(old)?;
    }
    Ok(path)
}

struct Summing {
    inner: BufWriter<File>,
    sum: crc32fast::Hasher,
}

impl Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
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

/// A snapshot in memory.
struct Contents {
    revision: Revision,
    entries: Vec<Numbered>,
    /// Everything is in the form in which it would be written today.
    is_current: bool,
}

/// Reads a snapshot whole and checks all of it.
fn read_file(codec: &Codec, path: &Path) -> Result<Contents, RestoreError> {
    let damaged = |why: String| RestoreError::Damaged {
        file: path.to_owned(),
        why,
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|source| RestoreError::Io {
            path: path.to_owned(),
            source,
        })?;
    let Some((body, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged("it is cut off".to_owned()));
    };
    if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
        return Err(damaged("its checksum is wrong".to_owned()));
    }
    let short = || damaged("it is cut off".to_owned());
    let rest = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| damaged("it is no snapshot".to_owned()))?;
    let (revision, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let (count, mut rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let mut entries = Vec::new();
    let mut all_current = true;
    for _ in 0..u64::from_be_bytes(*count) {
        let (modified, tail) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let (length, tail) = tail.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (record, tail) = tail.split_at_checked(length).ok_or_else(short)?;
        let decoded = codec.decode(record, |text| text.into());
        let (record, is_current) = decoded.map_err(|error| match error {
            DecodeError::Record(error) => damaged(error.to_string()),
            DecodeError::Sealed(why) => RestoreError::Sealed {
                file: path.to_owned(),
                why,
            },
        })?;
        all_current &= is_current;
        entries.push((Revision(u64::from_be_bytes(*modified)), record));
        rest = tail;
    }
    entries.sort_by_key(|(revision, _)| *revision);
    Ok(Contents {
        revision: Revision(u64::from_be_bytes(*revision)),
        entries,
        is_current: all_current,
    })
}

/// Puts the newest snapshot that can be trusted in the place of the store in `directory`; what was
/// there is kept beside it. Gives back which file it was. Revisions go on far beyond all that was
/// ever seen, and clients list again.
/// `seal` opens what is sealed in it.
pub fn restore_newest_snapshot(
    directory: &Path,
    seal: Option<Arc<dyn Seal>>,
) -> Result<PathBuf, RestoreError> {
    let layout = Layout::new(directory);
    let codec = Codec::new(seal);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Io { path, source }
    };
    let _lock = layout
        .lock(Duration::ZERO)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => RestoreError::InUse {
                directory: directory.to_owned(),
            },
            _ => RestoreError::Io {
                path: layout.lock.clone(),
                source: error,
            },
        })?;
    let none = || RestoreError::NoSnapshot {
        directory: layout.snapshots.clone(),
    };
    let all = files(&layout.snapshots).map_err(|_| none())?;
    let mut failed = None;
    let mut chosen = None;
    for file in all.iter().rev() {
        match read_file(&codec, file) {
            Ok(read) => {
                chosen = Some((file.clone(), read));
                break;
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let Some((file, contents)) = chosen else {
        return Err(failed.unwrap_or_else(none));
    };
    let (revision, entries) = (contents.revision, contents.entries);
    let fresh = layout.database.with_extension("restored");
    drop(std::fs::remove_dir_all(&fresh));
    fill(&codec, &fresh, revision, &entries).map_err(RestoreError::Store)?;
    let mut replaced = layout.rewritten();
    replaced.push(layout.database.clone());
    for old in replaced.into_iter().filter(|old| old.exists()) {
        let aside = (0..)
            .map(|number| layout.database.with_extension(format!("replaced-{number}")))
            .find(|path| !path.exists())
            .expect("some number is free");
        std::fs::rename(&old, &aside).map_err(io(&old))?;
    }
    std::fs::rename(&fresh, &layout.database).map_err(io(&fresh))?;
    let mark = Mark {
        reserved: Revision(revision.0 + REVISION_GAP),
        entries: None,
        database: None,
    };
    MarkFile::new(&layout.mark)
        .write(&mark)
        .map_err(io(&layout.mark))?;
    Ok(file)
}

fn fill(
    codec: &Codec,
    directory: &Path,
    revision: Revision,
    entries: &[Numbered],
) -> Result<(), String> {
    let text = |error: crate::backend::BackendError| error.to_string();
    let mut backend = SledBackend::open(directory, codec.clone()).map_err(text)?;
    for batch in entries.chunks(ENTRIES_PER_BATCH) {
        backend.commit(batch).map_err(text)?;
    }
    let begin = Revision(revision.0 + REVISION_GAP);
    backend.compact(&[], begin).map_err(text)?;
    backend.reserve(begin).map_err(text)
}
