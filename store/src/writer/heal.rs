//! Goes on after the disk failed.
//!
//! What a database holds that could not be written is not known, and sled never writes to it again.
//! So all that is visible, which is all that was ever answered, is written anew into a database
//! beside it, as one state without history: watchers that keep up go on, others list again. The
//! mark names the database that counts, as when it is written anew (`rewrite.rs`).

use super::compaction::{Compaction, Written};
use super::rewrite::Retired;
use super::{RESERVE_BLOCK, Writer};
use crate::archive::Frozen;
use crate::backend::{Backend, BackendError, Numbered};
use crate::mark::Mark;
use crate::revision::Revision;
use crate::store::{Config, Layout};
use crate::types::CommitError;
use nix::fcntl::posix_fallocate;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Records of a batch: 8 MB values are few.
const RECORDS_PER_BATCH: usize = 500;
/// What a database takes beside its records: the log's segments, and their index.
const DATABASE_BYTES: u64 = 4 * 1024 * 1024;
/// Of a record on disk, beside key and value.
const RECORD_BYTES: u64 = 128;

/// Nothing is written at the moment.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) why: CommitError,
    next: Instant,
    delay: Duration,
}

impl Trouble {
    fn new(why: CommitError, now: Instant, config: &Config) -> Self {
        Self {
            why,
            next: now + config.heal_delay,
            delay: config.heal_delay,
        }
    }

    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    fn later(&mut self, why: CommitError, now: Instant, config: &Config) {
        self.why = why;
        self.delay = (self.delay * 2).min(config.heal_delay_max);
        self.next = now + self.delay;
    }
}

impl Writer {
    #[allow(clippy::disallowed_methods)] // When to look at the disk again.
    pub(super) fn fail(&mut self, error: BackendError) {
        tracing::error!(%error, "the disk failed: nothing is written until it takes writes again");
        let why = CommitError::from(error);
        self.state.set_trouble(Some(why.clone()));
        self.broken = Some(Trouble::new(why, Instant::now(), &self.config));
    }

    /// Tries to go on, when it is time for that.
    pub(super) fn heal(&mut self, now: Instant) {
        let Some(mut trouble) = self.broken.take_if(|trouble| trouble.next <= now) else {
            return;
        };
        match self.write_anew() {
            Ok(entries) => {
                tracing::info!(entries, "the disk takes writes again: all was written anew");
                self.state.set_trouble(None);
            }
            Err(error) => {
                tracing::warn!(%error, "the disk still fails");
                trouble.later(error.into(), now, &self.config);
                self.state.set_trouble(Some(trouble.why.clone()));
                self.broken = Some(trouble);
            }
        }
    }

    fn write_anew(&mut self) -> Result<u64, BackendError> {
        let frozen = self.archive.freeze(&self.state);
        let layout = Layout::new(&self.config.directory);
        let mut records: Vec<Numbered> = frozen.records().collect();
        records.sort_by_key(|(revision, _)| *revision);
        room(&self.config.directory, bytes_of(&records))?;
        let (name, directory) = free_name(&layout);
        let reserved = Revision(self.last.0 + RESERVE_BLOCK);
        let filled = self.fill(&directory, &records, &frozen, reserved);
        let new = filled.inspect_err(|_| drop(std::fs::remove_dir_all(&directory)))?;
        let old = layout.current(Some(&self.mark(reserved, None)));
        // When this fails, nobody knows which of the two it names now: both stay, and both hold all
        // that was answered.
        let named = Mark {
            reserved,
            content: None,
            database: Some(name),
        };
        self.mark.write(&named)?;
        self.database = named.database;
        self.backend = new;
        self.reserved = reserved;
        drop(self.lazy.take());
        self.written_bytes = 0;
        self.compaction = Compaction::new(frozen.revision(), Written::default());
        // In this order: who reads from the new one finds that it begins here.
        self.state.set_compacted(frozen.revision());
        let reader = self.state.set_reader(self.backend.reader());
        let earlier = self.retired.replace(Retired::failed(old, reader));
        drop(earlier.and_then(Retired::remove));
        Ok(records.len() as u64)
    }

    fn fill(
        &self,
        directory: &Path,
        records: &[Numbered],
        frozen: &Frozen,
        reserved: Revision,
    ) -> Result<Box<dyn Backend>, BackendError> {
        let mut new = self.backend.beside(directory)?;
        for batch in records.chunks(RECORDS_PER_BATCH) {
            new.commit(batch)?;
        }
        new.compact(&[], frozen.revision())?;
        new.reserve(reserved)?;
        for directory in [directory, &self.config.directory] {
            File::open(directory)?.sync_all()?;
        }
        Ok(new)
    }
}

fn free_name(layout: &Layout) -> (String, PathBuf) {
    (1..)
        .map(|number| format!("database-{number}"))
        .map(|name| (name.clone(), layout.database.with_file_name(name)))
        .find(|(_, path)| !path.exists())
        .expect("some number is free")
}

fn bytes_of(records: &[Numbered]) -> u64 {
    let bytes = |(_, record): &Numbered| {
        RECORD_BYTES + (record.partition.len() + record.key.len() + record.value.len()) as u64
    };
    DATABASE_BYTES + records.iter().map(bytes).sum::<u64>()
}

/// Whether the disk takes writes and has that many bytes, found out without writing them: a
/// database that fails on the way costs memory that is never given back.
fn room(directory: &Path, bytes: u64) -> Result<(), BackendError> {
    let path = directory.join("room");
    let tried = (|| -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        file.write_all(&[0; 4096])?;
        let length = i64::try_from(bytes).map_err(std::io::Error::other)?;
        posix_fallocate(file.as_raw_fd(), 0, length)?;
        file.sync_all()
    })();
    let removed = match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    Ok(tried.and(removed)?)
}
