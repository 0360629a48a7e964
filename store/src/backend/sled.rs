//! Records in sled: keys are revisions, big-endian, so that every write is an append at the right
//! edge of the tree. The numbers beside them live in the same tree, under keys that sort after
//! every revision, so that one batch changes both.

use super::{Backend, BackendError, Loaded, Numbered, Reader};
use crate::lock::lock_within;
use crate::record::{Link, Record};
use crate::revision::Revision;
use crate::seal::{Codec, DecodeError};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) const FORMAT: &str = "1";
/// What sled calls its file.
const FILE: &str = "db";
const BLOBS: &str = "blobs";
/// Its settings, which are the same in each of our databases, with their checksum at the end.
const SETTINGS: &str = "conf";
const FORMAT_KEY: &[u8] = b"~format";
const COMPACTED_KEY: &[u8] = b"~compacted";
const RESERVED_KEY: &[u8] = b"~reserved";
/// Current values are in memory already: the cache only serves appends and old history.
const CACHE_BYTES: u64 = 4 * 1024 * 1024;
/// For threads of sled that still hold a database which was closed.
const LET_GO_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct SledBackend {
    db: sled::Db,
    codec: Codec,
    /// The file that sled appends to. Its own flush starts the write and neither empties the
    /// disk's cache nor commits the file's new length, so it does not outlive a power loss.
    file: Arc<File>,
    /// Where sled puts values too large for its log, each in a file of its own that it never syncs.
    blobs: Arc<PathBuf>,
    /// The newest of these that is on stable storage.
    synced_blob: Arc<AtomicI64>,
    /// The first write that failed: it was the last one.
    failed: Arc<OnceLock<BackendError>>,
}

impl From<sled::Error> for BackendError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => error.into(),
            other => Self::Io(other.to_string()),
        }
    }
}

fn key(revision: Revision) -> [u8; 8] {
    revision.0.to_be_bytes()
}

/// `None` for the keys of numbers.
fn revision_of(key: &[u8]) -> Option<Revision> {
    key.try_into()
        .ok()
        .map(|bytes| Revision(u64::from_be_bytes(bytes)))
}

impl SledBackend {
    /// Writes, and has it on stable storage when it returns, power loss or not.
    ///
    /// A write that fails keeps its place in sled's log for ever, and whoever flushes after it waits
    /// for it, also when the database is dropped, with a lock that all databases of the process
    /// share. So it is neither flushed nor dropped after that.
    fn write(
        &self,
        write: impl FnOnce(&sled::Db) -> Result<(), sled::Error>,
    ) -> Result<(), BackendError> {
        if let Some(why) = self.failed.get() {
            return Err(why.clone());
        }
        if let Err(error) = write(&self.db).and_then(|()| self.db.flush().map(drop)) {
            let error = BackendError::from(error);
            let _ = self.failed.set(error.clone());
            std::mem::forget(self.db.clone());
            return Err(error);
        }
        self.sync_blobs()?;
        Ok(self.file.sync_data()?)
    }

    /// Files of large values are named by a number that rises.
    fn blob_numbers(&self) -> Result<Vec<i64>, BackendError> {
        let entries = match std::fs::read_dir(&*self.blobs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            Ok(entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok()))
        };
        entries.map(name).filter_map(Result::transpose).collect()
    }

    fn sync_blobs(&self) -> Result<(), BackendError> {
        let after = self.synced_blob.load(Ordering::Relaxed);
        let new: Vec<i64> = self
            .blob_numbers()?
            .into_iter()
            .filter(|number| *number > after)
            .collect();
        let Some(newest) = new.iter().copied().max() else {
            return Ok(());
        };
        for number in new {
            match File::open(self.blobs.join(number.to_string())) {
                Ok(file) => file.sync_all()?,
                // Superseded already.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        File::open(&*self.blobs).and_then(|directory| directory.sync_all())?;
        self.synced_blob.store(newest, Ordering::Relaxed);
        Ok(())
    }

    /// The store's own lock is held: nobody else has the database.
    pub(crate) fn open(directory: &Path, codec: Codec) -> Result<Self, BackendError> {
        until_let_go(&directory.join(FILE))?;
        drop_torn_settings(&directory.join(SETTINGS))?;
        let db = sled::Config::new()
            .path(directory)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None)
            .mode(sled::Mode::LowSpace)
            .open()?;
        // Sled does not see to it that they outlive a loss of power.
        File::open(directory.join(SETTINGS))?.sync_all()?;
        File::open(directory)?.sync_all()?;
        let file = Arc::new(File::open(directory.join(FILE))?);
        let blobs = Arc::new(directory.join(BLOBS));
        let backend = Self {
            db,
            codec,
            file,
            blobs,
            synced_blob: Arc::default(),
            failed: Arc::default(),
        };
        match backend.db.get(FORMAT_KEY)? {
            Some(found) if found == FORMAT.as_bytes() => {}
            Some(found) => {
                let found = String::from_utf8_lossy(&found).into_owned();
                return Err(BackendError::Format { found });
            }
            None if backend.db.is_empty() => {
                backend.write(|db| db.insert(FORMAT_KEY, FORMAT.as_bytes()).map(drop))?;
            }
            None => {
                return Err(BackendError::Format {
                    found: "unknown".to_owned(),
                });
            }
        }
        Ok(backend)
    }

    /// History at and before this is gone.
    pub(crate) fn compacted(&self) -> Result<Revision, BackendError> {
        self.number(COMPACTED_KEY)
    }

    fn decode(&self, revision: Revision, bytes: &[u8]) -> Result<Record, BackendError> {
        let decoded = self.codec.decode(bytes, |text| text.into());
        let (record, _) = decoded.map_err(|error| unreadable(revision, error))?;
        Ok(record)
    }

    /// Records after a revision, in order; the numbers beside them come behind all of them.
    fn stored(
        &self,
        after: Revision,
    ) -> impl Iterator<Item = Result<(Revision, sled::IVec), BackendError>> {
        let range = self.db.range(key(after.next())..);
        range.map_while(|item| match item {
            Ok((key, bytes)) => revision_of(&key).map(|revision| Ok((revision, bytes))),
            Err(error) => Some(Err(error.into())),
        })
    }

    fn number(&self, key: &[u8]) -> Result<Revision, BackendError> {
        let Some(bytes) = self.db.get(key)? else {
            return Ok(Revision(0));
        };
        revision_of(&bytes).ok_or_else(|| {
            let name = String::from_utf8_lossy(key).into_owned();
            BackendError::Io(format!("the number {name} is not eight bytes"))
        })
    }
}

/// Sled locks its file, and does not say when the last of its threads has dropped a database that
/// was closed: one that is opened again at once would find it locked.
fn until_let_go(file: &Path) -> Result<(), BackendError> {
    let file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    lock_within(&file, LET_GO_MAX)?;
    Ok(file.unlock()?)
}

/// Sled reads them without looking at their checksum, and makes those that are not there.
fn drop_torn_settings(path: &Path) -> Result<(), BackendError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let is_whole = bytes
        .split_last_chunk()
        .is_some_and(|(text, sum)| crc32fast::hash(text) == u32::from_le_bytes(*sum));
    if is_whole {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), "the settings of the database are torn: they are made anew");
    Ok(std::fs::remove_file(path)?)
}

fn unreadable(revision: Revision, error: DecodeError) -> BackendError {
    match error {
        DecodeError::Sealed(why) => BackendError::Sealed(why),
        DecodeError::Record(error) => BackendError::Damaged {
            revision,
            why: error.to_string(),
        },
    }
}

impl Backend for SledBackend {
    fn load(&mut self, visit: &mut dyn FnMut(Revision, Record)) -> Result<Loaded, BackendError> {
        let mut known: HashSet<Arc<str>> = HashSet::new();
        let mut last = Revision(0);
        let mut stale = 0;
        for item in self.db.iter() {
            let (key, bytes) = item?;
            let Some(revision) = revision_of(&key) else {
                continue;
            };
            let intern = |text: &str| match known.get(text) {
                Some(shared) => Arc::clone(shared),
                None => {
                    let shared: Arc<str> = text.into();
                    known.insert(Arc::clone(&shared));
                    shared
                }
            };
            let (record, is_current) = self
                .codec
                .decode(&bytes, intern)
                .map_err(|error| unreadable(revision, error))?;
            stale += u64::from(!is_current);
            visit(revision, record);
            last = revision;
        }
        let reserved = self.number(RESERVED_KEY)?.max(last);
        Ok(Loaded {
            compacted: self.compacted()?,
            reserved,
            stale,
        })
    }

    fn commit(&mut self, batch: &[Numbered]) -> Result<(), BackendError> {
        let mut writes = sled::Batch::default();
        for (revision, record) in batch {
            writes.insert(&key(*revision), self.codec.encode(record)?);
        }
        self.write(|db| db.apply_batch(writes))
    }

    fn reserve(&mut self, up_to: Revision) -> Result<(), BackendError> {
        self.write(|db| db.insert(RESERVED_KEY, &key(up_to)).map(drop))
    }

    /// The directory is locked: nobody else commits.
    fn foreign(&mut self) -> Result<Vec<Numbered>, BackendError> {
        Ok(Vec::new())
    }

    fn compact(&mut self, drop: &[Revision], to: Revision) -> Result<(), BackendError> {
        let mut writes = sled::Batch::default();
        for revision in drop {
            writes.remove(&key(*revision));
        }
        writes.insert(COMPACTED_KEY, &key(to));
        self.write(|db| db.apply_batch(writes))
    }

    fn beside(&self, directory: &Path) -> Result<Box<dyn Backend>, BackendError> {
        Ok(Box::new(Self::open(directory, self.codec.clone())?))
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(self.clone())
    }
}

impl Reader for SledBackend {
    fn size(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }

    fn after(&self, revision: Revision, count: usize) -> Result<Vec<Numbered>, BackendError> {
        let decode = |(revision, bytes): (Revision, sled::IVec)| {
            Ok((revision, self.decode(revision, &bytes)?))
        };
        self.stored(revision)
            .take(count)
            .map(|found| found.and_then(decode))
            .collect()
    }

    fn links(&self, after: Revision, count: usize) -> Result<Vec<(Revision, Link)>, BackendError> {
        let decode = |(revision, bytes): (Revision, sled::IVec)| {
            let link = Link::decode(&bytes);
            let link = link.map_err(|error| unreadable(revision, DecodeError::Record(error)))?;
            Ok((revision, link))
        };
        self.stored(after)
            .take(count)
            .map(|found| found.and_then(decode))
            .collect()
    }

    fn at(&self, revision: Revision) -> Result<Option<Record>, BackendError> {
        let found = self.db.get(key(revision))?;
        found.map(|bytes| self.decode(revision, &bytes)).transpose()
    }
}

#[cfg(test)]
mod tests;
