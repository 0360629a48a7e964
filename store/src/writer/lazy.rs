//! Writes that are visible and wait for the disk.
//!
//! Invariant: in order of revision, and each record's `previous` is on disk or here before it. A
//! renewal takes the place of one of the same key that waits: the disk never sees that one.

use crate::backend::Numbered;
use crate::record::Operation;
use crate::revision::Revision;
use crate::store::Config;
use crate::types::Durability;
use std::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Lazy {
    /// Oldest first; true for a renewal.
    waiting: Vec<(Numbered, bool)>,
    due: Option<Instant>,
    /// Since the last flush, with those whose place was taken: history holds all of them in memory.
    changes: usize,
    bytes: u64,
}

/// The one of two that waits less.
pub(super) fn hastier(a: Durability, b: Durability) -> Durability {
    match (a, b) {
        (Durability::Synced, _) | (_, Durability::Synced) => Durability::Synced,
        (Durability::Lazy, _) | (_, Durability::Lazy) => Durability::Lazy,
        (Durability::Renewal, Durability::Renewal) => Durability::Renewal,
    }
}

impl Lazy {
    /// It must be on disk at `due`.
    pub(super) fn add(&mut self, mut numbered: Numbered, is_renewal: bool, due: Instant) {
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.changes += 1;
        self.bytes += numbered.1.weight();
        if is_renewal {
            self.take_place(&mut numbered);
        }
        self.waiting.push((numbered, is_renewal));
    }

    /// Whether more wait than history may hold in memory at any time.
    pub(super) fn is_full(&self, config: &Config) -> bool {
        self.changes > config.history_events_max || self.bytes > config.history_bytes_max as u64
    }

    /// Of the record that it follows, if that waits here and is a renewal, too.
    fn take_place(&mut self, (_, record): &mut Numbered) {
        let Some(previous) = record
            .previous
            .filter(|_| record.operation == Operation::Put)
        else {
            return;
        };
        let found = self
            .waiting
            .binary_search_by_key(&previous, |((revision, _), _)| *revision);
        if let Ok(place) = found
            && self.waiting[place].1
        {
            let ((_, before), _) = self.waiting.remove(place);
            record.previous = before.previous;
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The oldest revision that waits.
    pub(super) fn first(&self) -> Option<Revision> {
        self.waiting.first().map(|((revision, _), _)| *revision)
    }

    /// All of them, in order; none wait then.
    pub(super) fn take(&mut self) -> Vec<Numbered> {
        let all = std::mem::take(self).waiting;
        all.into_iter().map(|(numbered, _)| numbered).collect()
    }
}

#[cfg(test)]
mod tests;
