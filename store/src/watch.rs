//! Turns committed changes into one stream of events a watcher.
//!
//! Invariants: a watcher sees revisions strictly rising, with no hole after where it began; a slow
//! watcher is closed, never waited for. Watchers share the partition's history: one has a place in
//! it, not a queue of its own, and is slow when history in memory has left its place behind.

use crate::revision::Revision;
use crate::state::{Partition, State};
use crate::types::Event;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

/// Records read from disk at a time while a watcher catches up.
const RECORDS_PER_READ: usize = 500;
/// Events taken out of memory at a time, under its lock.
const EVENTS_PER_LOOK: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("revision {asked} is gone, the oldest kept is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    #[error("revision {asked} is in the future, the newest is {current}")]
    Future { asked: Revision, current: Revision },
}

/// Why a stream of events ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchClosed {
    #[error("the watcher is too slow")]
    TooSlow,
    #[error("the history was compacted while the watcher caught up")]
    Compacted,
    #[error("the store is closed")]
    StoreClosed,
    #[error("history cannot be read: {0}")]
    Backend(String),
}

pub struct Watch {
    state: Arc<State>,
    partition: Arc<Partition>,
    news: watch::Receiver<Revision>,
    /// Everything up to here was delivered or is in `backlog`.
    place: Revision,
    backlog: VecDeque<Arc<Event>>,
    /// Reads from disk until it has caught up with memory; from then on it must keep up.
    catching_up: bool,
    failed: Option<WatchClosed>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("partition", &self.partition.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// What a look at the history found.
enum Look {
    Events,
    Nothing,
    Behind,
}

impl Watch {
    pub(crate) fn new(
        state: &Arc<State>,
        partition: Arc<Partition>,
        after: Revision,
    ) -> Result<Self, WatchError> {
        let current = state.revision();
        if after > current && after > partition.current.read().0 {
            return Err(WatchError::Future {
                asked: after,
                current,
            });
        }
        let compacted = state.compacted();
        if after < compacted {
            return Err(WatchError::Compacted {
                asked: after,
                oldest: compacted,
            });
        }
        state.watchers.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            news: partition.news.subscribe(),
            state: Arc::clone(state),
            partition,
            place: after,
            backlog: VecDeque::new(),
            catching_up: true,
            failed: None,
        })
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchClosed> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                return Ok(event);
            }
            self.fill(1).await?;
        }
    }

    /// Waits until [`Self::take`] has something to give or to say. Dropping the future loses
    /// nothing.
    pub async fn ready(&mut self) {
        while self.backlog.is_empty() && self.failed.is_none() {
            if let Err(why) = self.fill(EVENTS_PER_LOOK).await {
                self.failed = Some(why);
            }
        }
    }

    /// At most `count` of the events that have come in, in order; none without [`Self::ready`].
    pub fn take(&mut self, count: usize) -> Result<Vec<Arc<Event>>, WatchClosed> {
        if self.backlog.is_empty()
            && let Some(why) = &self.failed
        {
            return Err(why.clone());
        }
        let count = count.min(self.backlog.len());
        Ok(self.backlog.drain(..count).collect())
    }

    /// How many watchers wait for the same news, this one among them.
    pub fn audience(&self) -> usize {
        self.partition.news.receiver_count()
    }

    /// Waits until there is something to do, and does it.
    async fn fill(&mut self, count: usize) -> Result<(), WatchClosed> {
        self.news.borrow_and_update();
        match self.look(count) {
            Look::Events => {
                self.catching_up = false;
                return Ok(());
            }
            Look::Behind if self.catching_up => return self.catch_up().await,
            Look::Behind => return Err(WatchClosed::TooSlow),
            Look::Nothing => self.catching_up = false,
        }
        if self.state.is_closed() {
            return Err(WatchClosed::StoreClosed);
        }
        let changed = self.news.changed().await;
        changed.map_err(|_| WatchClosed::StoreClosed)
    }

    /// Everything up to here was delivered: what a bookmark may say. Rises with the revision of
    /// the store also while nothing happens in this partition.
    pub fn revision(&mut self) -> Revision {
        if let Some(next) = self.backlog.front() {
            return Revision(next.revision.0 - 1);
        }
        // In this order: what is visible now is in the history that is looked at next.
        let visible = self.state.revision();
        match self.look(1) {
            Look::Nothing => self.place = self.place.max(visible),
            Look::Events => return self.revision(),
            Look::Behind => {}
        }
        self.place
    }

    /// Takes what history in memory has after the place.
    fn look(&mut self, count: usize) -> Look {
        let history = self.partition.history.lock();
        if self.place < history.from() {
            return Look::Behind;
        }
        for event in history.after(self.place).take(count) {
            self.backlog.push_back(Arc::clone(event));
        }
        match self.backlog.back() {
            Some(newest) => {
                self.place = newest.revision;
                Look::Events
            }
            None => Look::Nothing,
        }
    }

    async fn catch_up(&mut self) -> Result<(), WatchClosed> {
        let (state, after) = (Arc::clone(&self.state), self.place);
        let name = Arc::clone(&self.partition.name);
        let memory_from = self.partition.history.lock().from();
        let read = tokio::task::spawn_blocking(move || {
            state.read_history(&name, after, RECORDS_PER_READ, memory_from)
        });
        let (events, complete) = read
            .await
            .map_err(|error| WatchClosed::Backend(error.to_string()))?
            .map_err(|error| WatchClosed::Backend(error.to_string()))?;
        if self.state.compacted() > after {
            return Err(WatchClosed::Compacted);
        }
        // Disk has everything up to where memory begins, so an end before that is an end.
        self.place = if complete == after {
            memory_from
        } else {
            complete
        };
        self.backlog.extend(events.into_iter().map(Arc::new));
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}
