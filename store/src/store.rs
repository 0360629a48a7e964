//! The handle: opens, commits, reads, watches, closes.

use crate::archive::Frozen;
use crate::backend::Backend;
use crate::lock::lock_within;
use crate::mark::{Mark, is_database};
use crate::revision::Revision;
use crate::seal::{Codec, Seal};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::state::{Bounds, State};
use crate::types::{CommitError, GroupError, OpenError, Write};
use crate::watch::{Watch, WatchError};
use crate::writer::{Counters, Found, Request, Writer};
use parking_lot::Mutex;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

mod open; // Reading a database whole.

use open::{Opened, unusable};

/// Requests that wait for the writer; whoever comes then waits to queue.
const QUEUE_MAX: usize = 4096;
const FORMAT: u32 = 1;

/// Where the store is and how much it keeps.
#[derive(Clone)]
pub struct Config {
    pub directory: PathBuf,
    /// Seals values on their way to the disk; without one they are plain there.
    pub seal: Option<Arc<dyn Seal>>,
    /// Larger values are refused.
    pub value_bytes_max: usize,
    /// States older than this are read no more, so that what a client goes through page by page
    /// ends; watchers go on from as far back as there is history.
    pub read_time: Duration,
    /// History younger than this is kept, unless it is longer than `retain_bytes_max`.
    pub retain_time: Duration,
    pub retain_bytes_max: u64,
    /// Compaction waits until it drops at least this much.
    pub compact_bytes_min: u64,
    /// History in memory, a partition.
    pub history_events_max: usize,
    pub history_bytes_max: usize,
    /// A lazy write is on disk after this at the latest.
    pub lazy_delay: Duration,
    /// And one that renews after this.
    pub renewal_delay: Duration,
    /// How often a snapshot file is written, if anything changed; zero for never.
    pub snapshot_every: Duration,
    /// How many of these are kept.
    pub snapshots_kept: usize,
    /// How often the writer looks at its timers while nothing happens.
    pub tick: Duration,
    /// How often the writer remembers which revision was the newest.
    pub mark_every: Duration,
    /// After the disk failed: how long the writer waits before it tries to go on, the first time.
    /// Then twice as long each time.
    pub heal_delay: Duration,
    /// At most this long.
    pub heal_delay_max: Duration,
    /// How long another process may hold the store before it is said to be in use: what a killed
    /// process was just starting holds its files until it runs.
    pub lock_wait: Duration,
}

impl Config {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            seal: None,
            value_bytes_max: 8 * 1024 * 1024,
            read_time: Duration::from_secs(5 * 60),
            retain_time: Duration::from_secs(10 * 60),
            retain_bytes_max: 16 * 1024 * 1024,
            compact_bytes_min: 256 * 1024,
            history_events_max: 4096,
            history_bytes_max: 2 * 1024 * 1024,
            lazy_delay: Duration::from_secs(10),
            renewal_delay: Duration::from_secs(60),
            snapshot_every: Duration::from_secs(6 * 60 * 60),
            snapshots_kept: 5,
            tick: Duration::from_secs(60),
            mark_every: Duration::from_secs(60),
            heal_delay: Duration::from_secs(1),
            heal_delay_max: Duration::from_secs(30),
            lock_wait: Duration::from_secs(10),
        }
    }
}

/// Says everything but what seals.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Files of a store.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    directory: PathBuf,
    /// The first database of the store; the mark names a later one.
    pub(crate) database: PathBuf,
    pub(crate) snapshots: PathBuf,
    pub(crate) lock: PathBuf,
    pub(crate) mark: PathBuf,
}

impl Layout {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            database: directory.join("database"),
            snapshots: directory.join("snapshots"),
            lock: directory.join("lock"),
            mark: directory.join("mark"),
        }
    }

    /// Names that changed are on the disk when this returns.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    /// The database that counts.
    pub(crate) fn current(&self, mark: Option<&Mark>) -> PathBuf {
        match mark.and_then(|mark| mark.database.as_ref()) {
            Some(name) => self.directory.join(name),
            None => self.database.clone(),
        }
    }

    /// Databases that were written anew, finished or not.
    pub(crate) fn rewritten(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory);
        let paths = entries.into_iter().flatten().flatten();
        paths
            .filter(|entry| entry.file_name().to_str().is_some_and(is_database))
            .map(|entry| entry.path())
            .collect()
    }

    /// Held as long as the file is open; `WouldBlock` when another process holds it for longer
    /// than `wait`.
    pub(crate) fn lock(&self, wait: Duration) -> std::io::Result<File> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.lock)?;
        lock_within(&file, wait)?;
        Ok(file)
    }
}

/// Numbers for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub revision: Revision,
    pub compacted: Revision,
    pub watchers: usize,
    pub writes: u64,
    pub flushes: u64,
    pub disk_bytes: u64,
}

/// What a rewriting did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    pub records: u64,
    pub snapshots: usize,
    /// Snapshot files that could not be read and are as they were.
    pub unreadable: Vec<PathBuf>,
}

/// Cheap to clone; clones share. The writer stops when the store is closed or the last is dropped.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    state: Arc<State>,
    counters: Arc<Counters>,
    requests: SyncSender<Request>,
    places: Semaphore,
    /// How many records would have been written in another form at the start.
    stale: u64,
    writer: Mutex<Option<JoinHandle<()>>>,
    _lock: File,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("stats", &self.stats())
            .finish()
    }
}

impl Store {
    /// Reads and checks everything, then starts the writer. Never begins empty over something that
    /// cannot be read.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let directory = config.directory.clone();
        let layout = Layout::new(&directory);
        let unusable = |source| unusable(&directory, source);
        std::fs::create_dir_all(&directory).map_err(unusable)?;
        let lock = layout
            .lock(config.lock_wait)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock => OpenError::InUse {
                    directory: directory.clone(),
                },
                _ => unusable(error),
            })?;
        let Opened {
            backend,
            maps,
            loaded,
            database,
            written,
        } = Opened::read(&layout, &config)?;
        let seal = config.seal.clone();
        let bounds = Bounds {
            events_max: config.history_events_max,
            bytes_max: config.history_bytes_max,
        };
        let reader = backend.reader();
        let state = Arc::new(State::new(
            maps,
            loaded.reserved,
            loaded.compacted,
            reader,
            bounds,
        ));
        let counters = Arc::new(Counters::default());
        let writer = Writer::new(
            Box::new(backend),
            Arc::clone(&state),
            Arc::clone(&counters),
            config,
            Found {
                reserved: loaded.reserved,
                database,
                written,
                codec: Codec::new(seal),
            },
        );
        let (requests, queue) = sync_channel(QUEUE_MAX);
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || end_on_panic(|| writer.run(&queue)))
            .map_err(OpenError::Writer)?;
        let places = Semaphore::new(QUEUE_MAX);
        Ok(Self {
            shared: Arc::new(Shared {
                state,
                counters,
                requests,
                places,
                stale: loaded.stale,
                writer: Mutex::new(Some(writer)),
                _lock: lock,
            }),
        })
    }

    /// Answers when the write is visible and, unless it is lazy, on disk.
    pub async fn commit(&self, write: Write) -> Result<Revision, CommitError> {
        let done = self.commit_all(vec![write]).await;
        let revisions = done.map_err(|group| group.error)?;
        Ok(revisions[0])
    }

    /// The same for several writes of different keys: all of them are done, or none. Readers see
    /// all of them at once.
    pub async fn commit_all(&self, writes: Vec<Write>) -> Result<Vec<Revision>, GroupError> {
        self.ask(|answer| Request::Commit(writes, answer)).await?
    }

    /// Drops history up to a revision.
    pub async fn compact(&self, to: Revision) -> Result<(), CommitError> {
        self.ask(|answer| Request::Compact(to, answer)).await?
    }

    /// Writes a snapshot file now and gives back where.
    pub async fn write_snapshot(&self) -> Result<PathBuf, CommitError> {
        self.ask(Request::Archive)
            .await?
            .map_err(CommitError::Backend)
    }

    /// What is visible now, to be written wherever it is wanted. The writer is kept from its work
    /// for as long as it takes to clone a pointer a partition.
    pub async fn freeze(&self) -> Result<Frozen, CommitError> {
        self.ask(Request::Freeze).await
    }

    /// How many records were found in a form in which they would not be written today: plain ones
    /// that should be sealed, or ones sealed otherwise. `rewrite` brings them in line.
    pub fn stale(&self) -> u64 {
        self.shared.stale
    }

    /// Writes the database and the snapshot files anew, everything in the form of today; requests
    /// are served meanwhile. When it is done nothing of the old form is left in them. No snapshot
    /// file may be written in the old form from the moment this is called.
    pub async fn rewrite(&self) -> Result<Rewritten, CommitError> {
        let records = self.ask(Request::Rewrite).await?;
        let records = records.map_err(CommitError::Backend)?;
        let snapshots = self.ask(Request::Reseal).await?;
        let (snapshots, unreadable) = snapshots.map_err(CommitError::Backend)?;
        Ok(Rewritten {
            records,
            snapshots,
            unreadable,
        })
    }

    /// A place in the queue is free before anything is sent, so sending never blocks.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, CommitError> {
        let place = self
            .shared
            .places
            .acquire()
            .await
            .map_err(|_| CommitError::Closed)?;
        let (answer, answered) = oneshot::channel();
        self.shared
            .requests
            .send(request(answer))
            .map_err(|_| CommitError::Closed)?;
        let result = answered.await.map_err(|_| CommitError::Closed);
        drop(place);
        result
    }

    /// The newest state of a partition. Never waits.
    pub fn snapshot(&self, partition: &str) -> Snapshot {
        Snapshot::newest(&self.shared.state, &self.shared.state.partition(partition))
    }

    /// The revision of the newest change of a partition; two looks that see the same one saw the
    /// same state.
    pub fn changed(&self, partition: &str) -> Revision {
        self.shared.state.partition(partition).current.read().0
    }

    /// The state of a partition at a revision. Reads the disk when that is long ago.
    pub fn snapshot_at(&self, partition: &str, at: Revision) -> Result<Snapshot, SnapshotError> {
        Snapshot::at(
            &self.shared.state,
            &self.shared.state.partition(partition),
            at,
        )
    }

    /// The newest revision that is visible.
    pub fn revision(&self) -> Revision {
        self.shared.state.revision()
    }

    /// Waits until a revision is visible, for as long as that takes. Dropping the future loses
    /// nothing.
    pub async fn reach(&self, revision: Revision) {
        self.shared.state.reach(revision).await;
    }

    /// History at and before this is gone.
    pub fn compacted(&self) -> Revision {
        self.shared.state.compacted()
    }

    /// The changes of a partition after a revision, from now on.
    pub fn watch(&self, partition: &str, after: Revision) -> Result<Watch, WatchError> {
        Watch::new(
            &self.shared.state,
            self.shared.state.partition(partition),
            after,
        )
    }

    /// Names and sizes of the partitions that hold anything.
    pub fn partitions(&self) -> Vec<(Arc<str>, usize)> {
        let all = self.shared.state.partitions();
        let sized = all.into_iter().map(|partition| {
            let count = partition.current.read().1.len();
            (Arc::clone(&partition.name), count)
        });
        sized.filter(|(_, count)| *count > 0).collect()
    }

    /// Why nothing is written at the moment; none when the disk is well.
    pub fn trouble(&self) -> Option<CommitError> {
        self.shared.state.trouble()
    }

    pub fn stats(&self) -> Stats {
        let (state, counters) = (&self.shared.state, &self.shared.counters);
        Stats {
            revision: state.revision(),
            compacted: state.compacted(),
            watchers: state.watchers.load(Ordering::Relaxed),
            writes: counters.writes.load(Ordering::Relaxed),
            flushes: counters.flushes.load(Ordering::Relaxed),
            disk_bytes: state.reader().size(),
        }
    }

    /// Brings everything to disk, ends all watches and stops the writer.
    pub async fn close(self) {
        drop(self.ask(Request::Close).await);
        let writer = self.shared.writer.lock().take();
        if let Some(writer) = writer {
            // It is about to end: it lets go of the database first.
            drop(tokio::task::spawn_blocking(move || writer.join()).await);
        }
    }
}

/// A writer that broke off would leave everyone waiting on half a state.
fn end_on_panic(run: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
        tracing::error!("the writer of the store broke off: ending the process");
        std::process::abort();
    }
}
