//! How long a batch waits for writes that are about to come, so that they share its flush.
//!
//! Clients that write at the same time come back at about the same time, so a batch waits until it
//! is most of what the one before it was, and not longer than [`WINDOW`]. Not all of it: where every
//! client waits for the same flush nobody is at work meanwhile. What has queued up behind a flush is
//! taken whole, which is how batches grow; a batch whose window ends first is how they shrink. A
//! writer by itself is in batches of one and never waits.

use std::time::Duration;

/// At most this long does a write wait for company: little beside what a client sees anyway.
const WINDOW: Duration = Duration::from_millis(2);
/// Between two looks. Asleep, the writer is not woken for each write that comes in.
pub(super) const LOOK_EVERY: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(super) struct Gather {
    /// How large the last batch was.
    expected: usize,
}

impl Gather {
    /// Whether a batch of `have` writes, begun so long ago, waits on.
    pub(super) fn waits(&self, have: usize, begun: Duration) -> bool {
        have < self.expected * 3 / 4 && begun < WINDOW
    }

    pub(super) fn done(&mut self, have: usize) {
        self.expected = have;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(batches: &[usize]) -> Gather {
        let mut gather = Gather::default();
        for have in batches {
            gather.done(*have);
        }
        gather
    }

    #[test]
    fn one_writer_never_waits() {
        assert!(!after(&[]).waits(1, Duration::ZERO));
        assert!(!after(&[40, 1]).waits(1, Duration::ZERO));
    }

    #[test]
    fn a_batch_waits_for_most_of_what_there_was() {
        let gather = after(&[1, 4]);
        assert!(gather.waits(1, Duration::ZERO) && gather.waits(2, LOOK_EVERY));
        assert!(!gather.waits(3, LOOK_EVERY));
    }

    #[test]
    fn the_window_ends_the_wait() {
        assert!(!after(&[64]).waits(5, WINDOW));
    }
}
