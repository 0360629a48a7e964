//! What a controller has asked for and not yet seen in its cache.
//!
//! A controller that created three pods must not create three more because its cache lags.
//! It notes what it expects before it writes, its event handlers note what arrives, and a pass
//! that would create or delete waits until nothing is outstanding or the note is too old
//! to be believed. Deletions are tracked by uid, so that a pod seen terminating and later
//! seen gone counts once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use coracle_api::object::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// After this an event is taken as lost, as upstream does.
pub const EXPECTATIONS_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// One set per controller; bounded by its objects and the batch that each may have in flight.
#[derive(Debug, Default)]
pub struct Expectations {
    by_key: Mutex<HashMap<ObjectKey, Expected>>,
}

#[derive(Debug)]
struct Expected {
    creations: i64,
    deletions: HashSet<String>,
    since: Instant,
}

impl Expectations {
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces what was expected for the key, for a pass that does both. `uids` name the objects
    /// about to be deleted.
    pub fn expect(&self, key: &ObjectKey, creations: usize, uids: HashSet<String>) {
        self.set(key, creations as i64, uids);
    }

    /// Replaces what was expected for the key.
    pub fn expect_creations(&self, key: &ObjectKey, count: usize) {
        self.set(key, count as i64, HashSet::new());
    }

    /// Replaces what was expected for the key. `uids` name the objects about to be deleted.
    pub fn expect_deletions(&self, key: &ObjectKey, uids: impl IntoIterator<Item = String>) {
        self.set(key, 0, uids.into_iter().collect());
    }

    fn set(&self, key: &ObjectKey, creations: i64, deletions: HashSet<String>) {
        let expected = Expected {
            creations,
            deletions,
            since: Instant::now(),
        };
        self.by_key.lock().insert(key.clone(), expected);
    }

    /// An object was created, or its creation failed and must not be waited for.
    pub fn creation_observed(&self, key: &ObjectKey) {
        self.creations_observed(key, 1);
    }

    pub fn creations_observed(&self, key: &ObjectKey, count: usize) {
        if let Some(expected) = self.by_key.lock().get_mut(key) {
            expected.creations -= count as i64;
        }
    }

    /// An object was seen deleted or terminating, or its deletion failed.
    pub fn deletion_observed(&self, key: &ObjectKey, uid: &str) {
        if let Some(expected) = self.by_key.lock().get_mut(key) {
            expected.deletions.remove(uid);
        }
    }

    /// True when the controller may create and delete for the key.
    pub fn satisfied(&self, key: &ObjectKey) -> bool {
        match self.by_key.lock().get(key) {
            None => true,
            Some(expected) => {
                let fulfilled = expected.creations <= 0 && expected.deletions.is_empty();
                fulfilled || expected.since.elapsed() > EXPECTATIONS_TIMEOUT
            }
        }
    }

    /// The object is gone: nothing is expected for it any more.
    pub fn forget(&self, key: &ObjectKey) {
        self.by_key.lock().remove(key);
    }
}

#[cfg(test)]
mod tests;
