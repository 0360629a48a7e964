//! Logs who was not let in, and why, never with what they showed.
//!
//! At most one a second, so that somebody who tries tokens does not fill the disk; how many were
//! left out is told with the next.

use jiff::Timestamp;
use std::fmt::Display;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[derive(Debug)]
pub struct Refusals {
    /// The second of the last line.
    last: AtomicI64,
    left_out: AtomicU64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            last: AtomicI64::new(i64::MIN),
            left_out: AtomicU64::new(0),
        }
    }
}

impl Refusals {
    pub fn log(&self, why: &dyn Display, now: Timestamp) {
        if let Some(left_out) = self.turn(now) {
            tracing::warn!(%why, left_out, "a request was not authenticated");
        }
    }

    /// How many were left out before, when this one may be logged.
    fn turn(&self, now: Timestamp) -> Option<u64> {
        let second = now.as_second();
        if self.last.swap(second, Ordering::Relaxed) == second {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_is_logged_and_the_others_are_counted() {
        let refusals = Refusals::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(refusals.turn(at(5)), Some(0));
        assert_eq!(refusals.turn(at(5)), None);
        assert_eq!(refusals.turn(at(5)), None);
        assert_eq!(refusals.turn(at(6)), Some(2));
        assert_eq!(refusals.turn(at(1)), Some(0));
    }
}
