//! Partitions: the current map and the history of each, and the revision of all.
//!
//! Only the writer changes them. A reader holds a lock as long as it takes to clone a pointer.

use crate::backend::{BackendError, Reader};
use crate::history::{History, Map};
use crate::mark::Content;
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::types::{CommitError, Entry, Event, EventKind, Notes};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};

/// How much history is in memory, a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) events_max: usize,
    pub(crate) bytes_max: usize,
}

pub(crate) struct Partition {
    pub(crate) name: Arc<str>,
    /// The newest map, with the revision of its newest change.
    pub(crate) current: RwLock<(Revision, Map)>,
    pub(crate) history: Mutex<History>,
    /// Says the newest revision to watchers.
    pub(crate) news: watch::Sender<Revision>,
}

pub(crate) struct State {
    partitions: RwLock<HashMap<Arc<str>, Arc<Partition>>>,
    /// The newest revision that is visible.
    current: AtomicU64,
    /// Wakes who waits for a revision.
    moved: Notify,
    compacted: AtomicU64,
    /// States before this one are read no more.
    readable: AtomicU64,
    pub(crate) watchers: AtomicUsize,
    /// Another one after the database was written anew.
    reader: RwLock<Arc<dyn Reader>>,
    bounds: Bounds,
    /// Where partitions that are made later begin their history.
    started: Revision,
    closed: AtomicBool,
    /// Why nothing is written at the moment.
    trouble: RwLock<Option<CommitError>>,
}

impl State {
    pub(crate) fn new(
        maps: HashMap<Arc<str>, (Revision, Map)>,
        current: Revision,
        compacted: Revision,
        reader: Arc<dyn Reader>,
        bounds: Bounds,
    ) -> Self {
        let state = Self {
            partitions: RwLock::default(),
            current: AtomicU64::new(current.0),
            moved: Notify::new(),
            compacted: AtomicU64::new(compacted.0),
            readable: AtomicU64::new(compacted.0),
            watchers: AtomicUsize::new(0),
            reader: RwLock::new(reader),
            bounds,
            started: current,
            closed: AtomicBool::new(false),
            trouble: RwLock::default(),
        };
        for (name, found) in maps {
            let partition = Arc::new(state.make(&name, found));
            state.partitions.write().insert(name, partition);
        }
        state
    }

    fn make(&self, name: &Arc<str>, current: (Revision, Map)) -> Partition {
        let Bounds {
            events_max,
            bytes_max,
        } = self.bounds;
        Partition {
            name: Arc::clone(name),
            current: RwLock::new(current),
            history: Mutex::new(History::new(self.started, events_max, bytes_max)),
            news: watch::Sender::new(self.started),
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.current.load(Ordering::Acquire))
    }

    pub(crate) fn set_revision(&self, revision: Revision) {
        self.current.store(revision.0, Ordering::Release);
        self.moved.notify_waiters();
    }

    /// Waits until a revision is visible. Dropping the future loses nothing.
    pub(crate) async fn reach(&self, revision: Revision) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            // In this order: what becomes visible after the look wakes.
            moved.as_mut().enable();
            if self.revision() >= revision {
                return;
            }
            moved.await;
        }
    }

    pub(crate) fn compacted(&self) -> Revision {
        Revision(self.compacted.load(Ordering::Acquire))
    }

    pub(crate) fn set_compacted(&self, revision: Revision) {
        self.compacted.store(revision.0, Ordering::Release);
    }

    /// The oldest state that can be asked for.
    pub(crate) fn readable(&self) -> Revision {
        let readable = Revision(self.readable.load(Ordering::Acquire));
        readable.max(self.compacted())
    }

    /// Called by the writer alone; never goes back.
    pub(crate) fn set_readable(&self, revision: Revision) {
        self.readable.fetch_max(revision.0, Ordering::AcqRel);
    }

    pub(crate) fn reader(&self) -> Arc<dyn Reader> {
        Arc::clone(&self.reader.read())
    }

    /// Gives back the old one, which others may be reading still.
    pub(crate) fn set_reader(&self, reader: Arc<dyn Reader>) -> Arc<dyn Reader> {
        std::mem::replace(&mut *self.reader.write(), reader)
    }

    pub(crate) fn trouble(&self) -> Option<CommitError> {
        self.trouble.read().clone()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<CommitError>) {
        *self.trouble.write() = trouble;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all watchers.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for partition in self.partitions() {
            partition.news.send_modify(|_| {});
        }
    }

    pub(crate) fn partition(&self, name: &str) -> Arc<Partition> {
        if let Some(found) = self.partitions.read().get(name) {
            return Arc::clone(found);
        }
        let mut partitions = self.partitions.write();
        if let Some(found) = partitions.get(name) {
            return Arc::clone(found);
        }
        let name: Arc<str> = name.into();
        let made = Arc::new(self.make(&name, (Revision(0), Map::new())));
        partitions.insert(name, Arc::clone(&made));
        made
    }

    pub(crate) fn content(&self) -> Content {
        let partitions = self.partitions();
        let maps = partitions.iter().map(|partition| {
            let map = partition.current.read().1.clone();
            (Arc::clone(&partition.name), map)
        });
        let maps: Vec<(Arc<str>, Map)> = maps.collect();
        Content::of(maps.iter().map(|(name, map)| (&**name, map)))
    }

    /// Every partition, in order of name.
    pub(crate) fn partitions(&self) -> Vec<Arc<Partition>> {
        let mut all: Vec<_> = self.partitions.read().values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// At most `count` records after `after`, and up to which revision that is complete.
    /// Changes of the partition among them become events. Sees nothing that is neither visible nor
    /// at or before `published`: the disk may hold a batch that is not yet flushed.
    pub(crate) fn read_history(
        &self,
        partition: &str,
        after: Revision,
        count: usize,
        published: Revision,
    ) -> Result<(Vec<Event>, Revision), BackendError> {
        let visible = self.revision().max(published);
        let mut records = self.reader().after(after, count)?;
        records.truncate(records.partition_point(|(revision, _)| *revision <= visible));
        let complete = records.last().map_or(after, |(revision, _)| *revision);
        let mut events = Vec::new();
        for (revision, record) in records {
            if &*record.partition == partition {
                events.push(self.event(revision, record)?);
            }
        }
        Ok((events, complete))
    }

    fn event(&self, revision: Revision, record: Record) -> Result<Event, BackendError> {
        let previous = match record.previous {
            None => None,
            Some(at) => self.reader().at(at)?.map(|before| Entry {
                created: before.created,
                modified: at,
                value: before.value,
            }),
        };
        Ok(Event {
            revision,
            kind: kind_of(record.operation, previous.is_some()),
            key: record.key,
            value: record.value,
            created: record.created,
            previous,
            notes: Notes::default(),
        })
    }
}

pub(crate) fn kind_of(operation: Operation, had_previous: bool) -> EventKind {
    match (operation, had_previous) {
        (Operation::Delete, _) => EventKind::Deleted,
        (Operation::Put, true) => EventKind::Modified,
        (Operation::Put, false) => EventKind::Added,
    }
}
