//! What a controller wrote of the objects that it looks after, until its copy shows it.
//!
//! A pass over a state that is over decides on counts that are over too, and what it then writes
//! is refused as a conflict. The event that brings the copy up to date calls a pass anyway, so the
//! one in between is left out: nothing is decided later for it.
//!
//! Who only counts writes its first count at once and then waits for `PAUSE`, so that the events
//! of a burst end in few writes. What has to be done is never waited with, only what is to be told
//! of it.
//!
//! Knows versions that are numbers, as every API server counts; of others it says nothing.

use std::collections::HashMap;
use std::time::Duration;

use coracle_api::object::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::key_of;

/// A copy that lags longer is worked with as it is: a watch may be broken, or the server was set
/// back to a snapshot.
const BELIEVED_FOR: Duration = Duration::from_secs(5);
/// Between two counts of one object. Ten a second are more than anybody reads, and too short a
/// wait to be felt.
pub const PAUSE: Duration = Duration::from_millis(100);
/// How long to gather events of one object while it pauses, each of which would else be looked at
/// for itself.
const GATHERED_FOR: Duration = Duration::from_millis(10);
/// From so many on, those that nobody asks about any more are looked for and dropped.
const NOTES_MAX: usize = 1024;

/// One for each kind that a controller writes.
#[derive(Debug, Default)]
pub struct OwnWrites {
    by_key: Mutex<HashMap<ObjectKey, Note>>,
}

#[derive(Debug)]
struct Note {
    uid: Option<String>,
    /// The copy is current from this version on.
    version: u64,
    since: Instant,
}

impl OwnWrites {
    pub fn new() -> Self {
        Self::default()
    }

    /// The server answered with this state.
    pub fn wrote<K: kube::Resource>(&self, answer: &K) {
        if let Some(version) = version_of(answer) {
            self.note(answer, version);
        }
    }

    /// The server refused a write as a conflict: this state is over.
    pub fn refused<K: kube::Resource>(&self, outdated: &K) {
        if let Some(version) = version_of(outdated) {
            self.note(outdated, version.saturating_add(1));
        }
    }

    /// How a write that was decided on `from` ended.
    pub fn ended<K: kube::Resource>(&self, from: &K, outcome: &Result<K, kube::Error>) {
        match outcome {
            Ok(answer) => self.wrote(answer),
            Err(kube::Error::Api(status)) if status.is_conflict() => self.refused(from),
            Err(_) => {}
        }
    }

    /// How long to wait at most for the copy to show what was written; `None` if it does.
    pub fn behind<K: kube::Resource>(&self, copy: &K) -> Option<Duration> {
        let key = key_of(copy);
        let by_key = self.by_key.lock();
        let note = by_key.get(&key)?;
        let shown = note.uid != copy.meta().uid
            || version_of(copy).is_none_or(|version| version >= note.version);
        left(note, BELIEVED_FOR).filter(|_| !shown)
    }

    /// How long a count that nobody waits for is to wait, as one was written just now.
    pub fn pause(&self, key: &ObjectKey) -> Option<Duration> {
        left(self.by_key.lock().get(key)?, PAUSE)
    }

    /// How long an event waits for others that only change a count: not at all, unless the object
    /// pauses.
    pub fn gather(&self, key: &ObjectKey) -> Duration {
        self.pause(key).map_or(Duration::ZERO, |_| GATHERED_FOR)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.by_key.lock().remove(key);
    }

    fn note<K: kube::Resource>(&self, object: &K, version: u64) {
        let now = Instant::now();
        let note = Note {
            uid: object.meta().uid.clone(),
            version,
            since: now,
        };
        let mut by_key = self.by_key.lock();
        if by_key.len() >= NOTES_MAX {
            by_key.retain(|_, note| left(note, BELIEVED_FOR).is_some());
        }
        by_key.insert(key_of(object), note);
    }
}

fn left(note: &Note, of: Duration) -> Option<Duration> {
    let left = of.checked_sub(note.since.elapsed())?;
    (!left.is_zero()).then_some(left)
}

fn version_of<K: kube::Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests;
