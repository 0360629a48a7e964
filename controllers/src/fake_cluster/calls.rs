//! For tests: what a loop asks of the server, and so where it can die.
//!
//! Between two calls a loop changes only what it remembers, which it loses anyway: to die there is
//! to die before the next call. And to die after a read is no other thing than to die before it,
//! since the server is the same. So a death before each call, and one after each write, are all.
//!
//! Reads are many. A build dies at each write and at a part of the reads that the seed chooses;
//! with `CORACLE_DEATHS=all` at each of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::chance::next;

/// Reads of which one is died at, without `CORACLE_DEATHS=all`.
const READS_OF_ONE_DEATH: u64 = 4;

/// Where a process dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// After so many calls.
    pub(crate) after: usize,
    /// Whether the next one still gets through. Its answer does not come back.
    pub(crate) last_arrives: bool,
}

/// What the first life asked, in order: of each call whether it is a write. Events are none: what
/// they say is for people, who do without.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<bool>>>);

impl Calls {
    pub(super) fn add(&self, is_write: bool) {
        self.0.lock().push(is_write);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn writes(&self) -> usize {
        self.0.lock().iter().filter(|is_write| **is_write).count()
    }

    /// In another telling of the same.
    pub(crate) fn deaths(&self, seed: u64) -> Vec<Death> {
        let (chance, all) = (AtomicU64::new(seed), all_deaths());
        let calls = self.0.lock();
        let mut deaths = Vec::new();
        for (after, is_write) in calls.iter().enumerate() {
            let chosen = next(&chance).is_multiple_of(READS_OF_ONE_DEATH);
            if *is_write || chosen || all {
                deaths.push(Death {
                    after,
                    last_arrives: false,
                });
            }
            if *is_write {
                deaths.push(Death {
                    after,
                    last_arrives: true,
                });
            }
        }
        deaths
    }
}

#[allow(clippy::disallowed_methods)] // Only tests read it.
pub(crate) fn all_deaths() -> bool {
    match std::env::var("CORACLE_DEATHS") {
        Ok(text) => {
            assert_eq!(text, "all", "CORACLE_DEATHS");
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_died_before_and_a_write_after_too() {
        let calls = Calls::default();
        let written = |after: usize| after % 10 == 9;
        (0..60).for_each(|after| calls.add(written(after)));
        let deaths = calls.deaths(7);
        let at = |after, last| {
            let mut those = deaths.iter();
            those.any(|one| one.after == after && one.last_arrives == last)
        };
        let died = (0..60).filter(|after| at(*after, false)).count();
        assert!(!(0..60).any(|after| at(after, true) != written(after)));
        assert!((0..60).all(|after| !written(after) || at(after, false)));
        assert!(died > 6 && (died < 60 || all_deaths()), "{died}");
    }
}
