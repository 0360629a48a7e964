//! Deletes Events an hour after they were last written, as upstream's server does.
//!
//! Follows the Events in the store. While the server runs, time is counted by a clock that nobody
//! sets; of those found at a start, the times in them say when they were written last. A clock that
//! was set can make such an Event go early or stay for one more hour, no longer. The deletions reach
//! the disk with others' writes: one that a crash takes back is done again.

use crate::config::Clock;
use crate::registry::{Refusal, Registry, decode, partition};
use coracle_api::object::Object;
use coracle_api::resource::{Durability, Resource};
use coracle_store::{EventKind, Expect, Revision, Snapshot, WatchClosed};
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What an hour brings one by one goes together; of a shorter time a tenth.
const GATHER_MAX: Duration = Duration::from_secs(10);
/// Between two tries of what the disk refused.
const RETRY: Duration = Duration::from_secs(60);
const EVENTS_PER_LOOK: usize = 256;

/// Deletes them until the server stops; never where `ttl` is zero.
pub async fn run(registry: Registry, ttl: Duration, clock: Clock, stop: CancellationToken) {
    let Some(events) = registry.find("", "v1", "events").filter(|_| !ttl.is_zero()) else {
        return;
    };
    let caretaker = Caretaker {
        registry,
        events,
        ttl,
        clock,
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = caretaker.follow() => {}
    }
}

struct Caretaker {
    registry: Registry,
    events: &'static Resource,
    ttl: Duration,
    clock: Clock,
}

impl Caretaker {
    async fn follow(&self) {
        loop {
            let snapshot = self.registry.snapshot(self.events);
            let store = &self.registry.store;
            let Ok(mut watch) = store.watch(&partition(self.events), snapshot.revision()) else {
                continue; // Compacted in between.
            };
            let mut living = Living::found(self.ttl, self.ages(&snapshot), now());
            drop(snapshot);
            loop {
                tokio::select! {
                    () = watch.ready() => match watch.take(EVENTS_PER_LOOK) {
                        Ok(changes) => {
                            let written = changes.iter();
                            let written =
                                written.filter(|change| change.kind != EventKind::Deleted);
                            for change in written {
                                living.written(&change.key, change.revision, now());
                            }
                        }
                        Err(WatchClosed::StoreClosed) => return,
                        Err(error) => {
                            tracing::warn!(%error, "lost track of events, reading all of them");
                            break;
                        }
                    },
                    () = wait(living.next()) => self.delete_those_over(&mut living).await,
                }
            }
        }
    }

    /// What there is, and how long ago it was written by the times in it.
    fn ages(&self, snapshot: &Snapshot) -> Vec<(Version, Duration)> {
        let now = (self.clock)();
        let aged = snapshot.iter().map(|(key, entry)| {
            let event = decode(self.events, &entry.value);
            let written = event.and_then(|event| last_written(&event));
            let ago = written.map_or(SignedDuration::ZERO, |at| now.duration_since(at));
            let version = Version {
                key: Arc::clone(key),
                revision: entry.modified,
            };
            (version, Duration::try_from(ago).unwrap_or_default())
        });
        aged.collect()
    }

    async fn delete_those_over(&self, living: &mut Living) {
        let now = now();
        while let Some(version) = living.over(now) {
            match self.delete(&version).await {
                // What was written again has a later entry.
                Ok(()) | Err(Refusal::Absent | Refusal::Changed) => {}
                Err(error) => {
                    tracing::warn!(event = %version.key, %error, "an old event is not deleted");
                    return living.again(version, now + RETRY);
                }
            }
        }
    }

    async fn delete(&self, version: &Version) -> Result<(), Refusal> {
        let entry = self
            .registry
            .snapshot(self.events)
            .get(&version.key)
            .cloned();
        let entry = entry.filter(|entry| entry.modified == version.revision);
        let last = entry.and_then(|entry| decode(self.events, &entry.value));
        let last = last.ok_or(Refusal::Absent)?;
        let expect = Expect::At(version.revision);
        let deleted = self
            .registry
            .delete(self.events, &last, expect, Durability::Lazy);
        deleted.await.map(drop)
    }
}

#[allow(clippy::disallowed_methods)] // How long something lasts, no time of day.
fn now() -> Instant {
    Instant::now()
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// An Event as it was written once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    key: Arc<str>,
    revision: Revision,
}

/// Versions, and when their time is over. Each lives equally long, so they go in the order in which
/// they came.
#[derive(Debug)]
struct Living {
    ttl: Duration,
    due: VecDeque<(Instant, Version)>,
}

impl Living {
    fn found(ttl: Duration, ages: Vec<(Version, Duration)>, now: Instant) -> Self {
        let due = ages.into_iter().map(|(version, ago)| {
            let left = ttl.saturating_sub(ago);
            (now + left, version)
        });
        let mut due: Vec<(Instant, Version)> = due.collect();
        due.sort_by_key(|(at, _)| *at);
        Self {
            ttl,
            due: due.into(),
        }
    }

    fn written(&mut self, key: &Arc<str>, revision: Revision, now: Instant) {
        let version = Version {
            key: Arc::clone(key),
            revision,
        };
        self.due.push_back((now + self.ttl, version));
    }

    /// When to look for those that are over.
    fn next(&self) -> Option<Instant> {
        let gather = (self.ttl / 10).min(GATHER_MAX);
        self.due.front().map(|(at, _)| *at + gather)
    }

    fn over(&mut self, now: Instant) -> Option<Version> {
        let first = self.due.pop_front_if(|(at, _)| *at <= now)?;
        Some(first.1)
    }

    /// Nobody goes before it.
    fn again(&mut self, version: Version, at: Instant) {
        self.due.push_front((at, version));
    }
}

/// The latest time in an Event: of its making, of who wrote it, of what it tells.
fn last_written(event: &Object) -> Option<Timestamp> {
    let managed = event.get(&["metadata", "managedFields"]);
    let managed = managed.and_then(|managed| managed.as_array());
    let managed = managed.into_iter().flatten();
    let own: [&[&str]; 3] = [
        &["metadata", "creationTimestamp"],
        &["lastTimestamp"],
        &["series", "lastObservedTime"],
    ];
    let times = managed
        .filter_map(|manager| manager.get("time"))
        .chain(own.into_iter().filter_map(|path| event.get(path)));
    times.filter_map(|time| time.as_str()?.parse().ok()).max()
}

#[cfg(test)]
mod tests;
