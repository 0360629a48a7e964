//! Services whose connections the kernel may have to forget. Who was looked at in vain waits for the
//! next look, which comes later each time. Pure.

use crate::network::view::Key;
use std::collections::BTreeSet;
use std::time::Duration;

/// After a look that was not whole; doubled up to the second each time.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Suspects {
    waiting: BTreeSet<Key>,
    /// By the look that is under way.
    looked_at: BTreeSet<Key>,
    retry: Duration,
}

impl Suspects {
    pub fn new() -> Self {
        Self {
            waiting: BTreeSet::new(),
            looked_at: BTreeSet::new(),
            retry: RETRY_MIN,
        }
    }

    pub fn add(&mut self, key: Key) {
        self.waiting.insert(key);
    }

    /// Whom to look at now. The look is to be ended before the next one.
    pub fn look(&mut self) -> &BTreeSet<Key> {
        self.looked_at = std::mem::take(&mut self.waiting);
        &self.looked_at
    }

    /// How long to wait when this look is not whole.
    pub fn retry(&self) -> Duration {
        self.retry
    }

    pub fn looked(&mut self, is_whole: bool) {
        let looked_at = std::mem::take(&mut self.looked_at);
        if is_whole {
            self.retry = RETRY_MIN;
        } else {
            self.waiting.extend(looked_at);
            self.retry = (self.retry * 2).min(RETRY_MAX);
        }
    }
}

#[cfg(test)]
mod tests;
