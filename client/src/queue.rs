//! The work queue of a control loop: a set of keys, each handed to one worker at a time.
//!
//! Invariants: a key is never with two workers at once; a key added while it is being worked on
//! comes again after `done`; however often a key is added, it waits once. The queue is bounded by
//! the number of distinct keys. Semantics are those of upstream's rate limiting work queue.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// First delay of a key that fails; doubles with each failure in a row.
const BACKOFF_MIN: Duration = Duration::from_millis(5);
/// Upstream's ceiling for a key that keeps failing.
const BACKOFF_MAX: Duration = Duration::from_secs(1000);

/// Cheap to clone; clones share the queue.
#[derive(Debug)]
pub struct WorkQueue<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    ready: VecDeque<T>,
    /// What waits in `ready` or must come again after `done`.
    dirty: HashSet<T>,
    processing: HashSet<T>,
    /// By due time, then by insertion; `due` says which entry of a key counts.
    delayed: BTreeMap<(Instant, u64), T>,
    due: HashMap<T, (Instant, u64)>,
    failures: HashMap<T, u32>,
    backoff: Backoff,
    sequence: u64,
    counters: Counters,
}

/// How long a key that fails waits.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first failure; doubles with each one in a row.
    pub min: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            min: BACKOFF_MIN,
            max: BACKOFF_MAX,
        }
    }
}

/// What the queue did since it was made, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub adds: u64,
    pub retries: u64,
    pub depth: usize,
    pub delayed: usize,
    pub processing: usize,
    /// Keys whose last pass failed.
    pub failing: usize,
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Eq + Hash + Clone> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Eq + Hash + Clone> WorkQueue<T> {
    pub fn new() -> Self {
        Self::with_backoff(Backoff::default())
    }

    pub fn with_backoff(backoff: Backoff) -> Self {
        let state = State {
            ready: VecDeque::new(),
            dirty: HashSet::new(),
            processing: HashSet::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            backoff,
            sequence: 0,
            counters: Counters::default(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                changed: Notify::new(),
            }),
        }
    }

    /// Makes the key ready now.
    pub fn add(&self, item: T) {
        if self.shared.state.lock().add(item) {
            self.shared.changed.notify_one();
        }
    }

    /// Makes the key ready after a delay; an earlier due time of the same key wins.
    pub fn add_after(&self, item: T, delay: Duration) {
        if delay.is_zero() {
            return self.add(item);
        }
        self.shared
            .state
            .lock()
            .add_at(item, Instant::now() + delay);
        self.shared.changed.notify_one();
    }

    /// Makes the key ready after its own delay, which doubles with each call until `forget`.
    pub fn add_backoff(&self, item: T) {
        let delay = {
            let mut state = self.shared.state.lock();
            state.counters.retries += 1;
            let failures = state.failures.entry(item.clone()).or_insert(0);
            *failures += 1;
            let before = *failures - 1;
            state.backoff.after(before)
        };
        self.add_after(item, delay);
    }

    /// Ends the series of failures of a key.
    pub fn forget(&self, item: &T) {
        self.shared.state.lock().failures.remove(item);
    }

    /// How often the key failed in a row.
    pub fn failures(&self, item: &T) -> u32 {
        self.shared
            .state
            .lock()
            .failures
            .get(item)
            .copied()
            .unwrap_or(0)
    }

    /// Waits for a key and takes it. The caller must call `done` for it.
    /// Dropping the future loses nothing.
    pub async fn next(&self) -> T {
        loop {
            let wake_at = {
                let mut state = self.shared.state.lock();
                state.promote_due(Instant::now());
                if let Some(item) = state.take() {
                    // Another worker must watch over what is left: ready keys and due times.
                    if !state.ready.is_empty() || !state.delayed.is_empty() {
                        self.shared.changed.notify_one();
                    }
                    return item;
                }
                state.delayed.keys().next().map(|(at, _)| *at)
            };
            match wake_at {
                None => self.shared.changed.notified().await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.shared.changed.notified()).await;
                }
            }
        }
    }

    /// Gives the key back; it is ready again at once when it was added meanwhile.
    pub fn done(&self, item: &T) {
        if self.shared.state.lock().done(item) {
            self.shared.changed.notify_one();
        }
    }

    /// Keys that are ready now.
    pub fn len(&self) -> usize {
        self.shared.state.lock().ready.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn counters(&self) -> Counters {
        let state = self.shared.state.lock();
        Counters {
            depth: state.ready.len(),
            delayed: state.delayed.len(),
            processing: state.processing.len(),
            failing: state.failures.len(),
            ..state.counters
        }
    }
}

impl<T: Eq + Hash + Clone> State<T> {
    /// True when a worker has something new to take.
    fn add(&mut self, item: T) -> bool {
        if !self.dirty.insert(item.clone()) {
            return false;
        }
        self.counters.adds += 1;
        if self.processing.contains(&item) {
            return false;
        }
        self.ready.push_back(item);
        true
    }

    fn add_at(&mut self, item: T, at: Instant) {
        if let Some(current) = self.due.get(&item).copied() {
            if current.0 <= at {
                return;
            }
            self.delayed.remove(&current);
        }
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.due.insert(item.clone(), slot);
        self.delayed.insert(slot, item);
    }

    fn promote_due(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let item = entry.remove();
            self.due.remove(&item);
            self.add(item);
        }
    }

    fn take(&mut self) -> Option<T> {
        let item = self.ready.pop_front()?;
        self.dirty.remove(&item);
        self.processing.insert(item.clone());
        Some(item)
    }

    fn done(&mut self, item: &T) -> bool {
        let held = self.processing.remove(item);
        debug_assert!(held, "done for a key that no worker holds");
        if self.dirty.contains(item) {
            self.ready.push_back(item.clone());
            return true;
        }
        false
    }
}

impl Backoff {
    fn after(self, failures_before: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures_before).unwrap_or(u32::MAX);
        self.min.saturating_mul(factor).min(self.max)
    }
}

#[cfg(test)]
mod tests;
