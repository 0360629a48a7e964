//! Drops history that nobody may ask for any more.
//!
//! Walks the records between the last compaction and the new one: each one's predecessor is
//! superseded, and a tombstone has done its work. Bounded work a step.

use crate::backend::{Backend, BackendError};
use crate::record::Operation;
use crate::revision::Revision;
use crate::state::State;
use crate::store::Config;
use std::collections::VecDeque;
use std::time::Instant;

/// Records looked at in one step, between which writes are served.
const RECORDS_PER_STEP: usize = 2000;
/// Points in history remembered; with one a minute, enough for any window up to two hours.
const MARKS_MAX: usize = 128;
/// How finely the window of bytes is cut, so that it is at most this part too long.
const MARKS_PER_WINDOW: u64 = 32;

/// A point in history: when it was the newest, and the bytes that had been written by then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    revision: Revision,
    bytes: u64,
}

/// Sums up what was written, as marks for the compaction after a start. Counts bytes and not
/// revisions: after a crash these jump over all that was reserved.
#[derive(Debug, Default)]
pub(crate) struct Written {
    chunks: Vec<(Revision, u64)>,
    bytes: u64,
}

impl Written {
    const CHUNK_BYTES: u64 = 64 * 1024;

    pub(crate) fn add(&mut self, revision: Revision, bytes: u64) {
        let chunk = self.bytes / Self::CHUNK_BYTES;
        self.bytes += bytes;
        if self.bytes / Self::CHUNK_BYTES > chunk {
            self.chunks.push((revision, self.bytes));
        }
    }
}

#[derive(Debug)]
pub(super) struct Compaction {
    done: Revision,
    /// Set while steps are left to do.
    target: Option<Revision>,
    /// Oldest first.
    marks: VecDeque<Mark>,
    /// The newest mark that fell out of the window.
    left: Option<Mark>,
    /// Bytes that had been written by `done`.
    done_bytes: u64,
    /// History found at the start, until there is a time to mark it with.
    found: Written,
}

impl Compaction {
    pub(super) fn new(done: Revision, found: Written) -> Self {
        Self {
            done,
            target: None,
            marks: VecDeque::new(),
            left: None,
            done_bytes: 0,
            found,
        }
    }

    /// What was written since the history that was found: counted on from there.
    pub(super) fn found_bytes(&self) -> u64 {
        self.found.bytes
    }

    /// Up to where history should be dropped now: what is older than the window, or beyond the
    /// bytes that are kept at most. `written` is all bytes up to `current`.
    pub(super) fn due(
        &mut self,
        now: Instant,
        config: &Config,
        current: Revision,
        written: u64,
    ) -> Option<Revision> {
        let bytes_per_mark = config.retain_bytes_max / MARKS_PER_WINDOW;
        for (revision, bytes) in std::mem::take(&mut self.found.chunks) {
            self.mark(now, revision, bytes, bytes_per_mark);
        }
        let is_old = |mark: &Mark| now - mark.at >= config.mark_every;
        let every = if self.marks.back().is_none_or(is_old) {
            0
        } else {
            bytes_per_mark
        };
        self.mark(now, current, written, every);
        while let Some(mark) = self.marks.front() {
            let is_long = written - mark.bytes > config.retain_bytes_max;
            if now - mark.at < config.retain_time && !is_long {
                break;
            }
            self.left = self.marks.pop_front();
        }
        // A few bytes are not worth a write to the disk.
        let left = self
            .left
            .filter(|left| left.bytes - self.done_bytes >= config.compact_bytes_min)?;
        self.left = None;
        self.done_bytes = left.bytes;
        Some(left.revision)
    }

    /// The oldest state that may be read: the newest of those as old as `read_time`.
    pub(super) fn readable(&self, now: Instant, config: &Config) -> Option<Revision> {
        let is_old = |mark: &&Mark| now - mark.at >= config.read_time;
        let newest = self.marks.iter().rev().find(is_old);
        newest.or(self.left.as_ref()).map(|mark| mark.revision)
    }

    /// Remembers a point if it is at least `apart` bytes behind the last one.
    fn mark(&mut self, at: Instant, revision: Revision, bytes: u64, apart: u64) {
        let last = self.marks.back().map_or(0, |mark| mark.bytes);
        if bytes - last < apart {
            return;
        }
        self.marks.push_back(Mark {
            at,
            revision,
            bytes,
        });
        if self.marks.len() > MARKS_MAX {
            self.left = self.marks.pop_front();
        }
    }

    /// Decides that history up to here goes; from now on nobody begins to read it.
    pub(super) fn begin(&mut self, state: &State, to: Revision) {
        if to > self.done && to > state.compacted() {
            state.set_compacted(to);
            self.target = Some(to);
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.target.is_some()
    }

    /// One bounded step towards what was begun.
    pub(super) fn step(&mut self, backend: &mut dyn Backend) -> Result<(), BackendError> {
        let Some(to) = self.target else { return Ok(()) };
        let links = backend.reader().links(self.done, RECORDS_PER_STEP)?;
        let mut drop = Vec::new();
        let mut reached = self.done;
        for (revision, link) in links.iter().take_while(|(revision, _)| *revision <= to) {
            drop.extend(link.previous);
            if link.operation == Operation::Delete {
                drop.push(*revision);
            }
            reached = *revision;
        }
        let is_end = links.len() < RECORDS_PER_STEP
            || links.last().is_none_or(|(revision, _)| *revision > to);
        let reached = if is_end { to } else { reached };
        backend.compact(&drop, reached)?;
        self.done = reached;
        if is_end {
            self.target = None;
        }
        Ok(())
    }
}
