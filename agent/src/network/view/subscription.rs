//! Who wants to know which Services changed.
//!
//! A reader that is slow misses nothing and holds nobody up: what changed meanwhile is one set of
//! keys, bounded by the number of Services.

use super::Key;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Pending {
    keys: Mutex<BTreeSet<Key>>,
    wake: Notify,
}

/// One reader's. Ends by being dropped.
#[derive(Debug)]
pub struct Subscription(Arc<Pending>);

impl Subscription {
    /// Waits until something changed, and takes it all. Never empty. Safe to cancel: nothing is
    /// taken before it is given.
    pub async fn changed(&mut self) -> BTreeSet<Key> {
        loop {
            let keys = self.take();
            if !keys.is_empty() {
                return keys;
            }
            self.0.wake.notified().await;
        }
    }

    /// What changed up to now, without waiting.
    pub fn take(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.0.keys.lock())
    }
}

#[derive(Debug, Default)]
pub(super) struct Subscribers(Mutex<Vec<Weak<Pending>>>);

impl Subscribers {
    pub fn add(&self, keys: BTreeSet<Key>) -> Subscription {
        let pending = Arc::new(Pending {
            keys: Mutex::new(keys),
            wake: Notify::new(),
        });
        self.0.lock().push(Arc::downgrade(&pending));
        Subscription(pending)
    }

    pub fn tell(&self, keys: &[Key]) {
        self.0.lock().retain(|subscriber| {
            let Some(pending) = subscriber.upgrade() else {
                return false;
            };
            pending.keys.lock().extend(keys.iter().cloned());
            pending.wake.notify_one();
            true
        });
    }
}
