//! Whether this process leads, and since when it has not renewed: for who looks after it from outside.
//!
//! Work that does not end after a loss counts as leading until it has.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Clones share.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<Mutex<Option<Instant>>>);

impl Held {
    pub(super) fn renewed(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    pub fn is_held(&self) -> bool {
        self.0.lock().is_some()
    }

    /// How long ago it was renewed, while this process leads.
    pub fn silent_for(&self) -> Option<Duration> {
        self.0.lock().map(|since| since.elapsed())
    }
}
