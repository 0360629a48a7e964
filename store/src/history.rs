//! The newest changes of a partition, in memory, for watchers and for reading old revisions.
//!
//! Invariant: holds every change of its partition after `from`, in order. Bounded by count and by
//! bytes; what a crash could still take from the disk is never dropped, so that disk and memory
//! together have no hole.

use crate::revision::Revision;
use crate::types::{Event, EventKind};
use imbl::OrdMap;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::types::Entry;

pub(crate) type Map = OrdMap<Arc<str>, Entry>;

/// Events whose notes are kept: what watchers that keep up are still reading, and little memory.
const NOTED_EVENTS_MAX: usize = 128;
/// Bytes of objects in those events; notes are about as large as what they are made of.
const NOTED_BYTES_MAX: usize = 512 * 1024;

#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    /// How many of the newest events keep their notes, and the bytes of their values.
    noted: usize,
    noted_bytes: usize,
    from: Revision,
    bytes: usize,
    events_max: usize,
    bytes_max: usize,
}

impl History {
    pub(crate) fn new(from: Revision, events_max: usize, bytes_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            noted: 0,
            noted_bytes: 0,
            from,
            bytes: 0,
            events_max,
            bytes_max,
        }
    }

    /// `persisted` is the revision up to which everything is on disk.
    pub(crate) fn push(&mut self, event: Event, persisted: Revision) {
        self.bytes += weight(&event);
        self.noted += 1;
        self.noted_bytes += event.value.len();
        self.events.push_back(Arc::new(event));
        self.forget_notes();
        while self.events.len() > self.events_max || self.bytes > self.bytes_max {
            match self.events.front() {
                Some(oldest) if oldest.revision <= persisted && self.events.len() > 1 => {}
                _ => break,
            }
            if self.noted == self.events.len() {
                self.forget_oldest_note();
            }
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= weight(&oldest);
            self.from = oldest.revision;
        }
    }

    fn forget_notes(&mut self) {
        while self.noted > 1
            && (self.noted > NOTED_EVENTS_MAX || self.noted_bytes > NOTED_BYTES_MAX)
        {
            self.forget_oldest_note();
        }
    }

    fn forget_oldest_note(&mut self) {
        let place = self.events.len() - self.noted;
        if let Some(event) = self.events.get(place) {
            event.notes.forget();
            self.noted_bytes -= event.value.len();
            self.noted -= 1;
        }
    }

    /// Every change after this revision is here.
    pub(crate) fn from(&self) -> Revision {
        self.from
    }

    /// The changes after a revision; the caller has made sure that it is not before `from`.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        let place = self
            .events
            .partition_point(|event| event.revision <= revision);
        self.events.range(place..)
    }

    /// Takes back the changes after a revision from a map that has them all.
    pub(crate) fn undo(&self, map: &mut Map, to: Revision) {
        for event in self
            .events
            .iter()
            .rev()
            .take_while(|event| event.revision > to)
        {
            undo(map, event);
        }
    }
}

pub(crate) fn undo(map: &mut Map, event: &Event) {
    match &event.previous {
        Some(previous) => drop(map.insert(Arc::clone(&event.key), previous.clone())),
        None => drop(map.remove(&event.key)),
    }
}

/// What an event holds in memory beyond the current state.
fn weight(event: &Event) -> usize {
    const FIXED: usize = 160;
    let previous = event
        .previous
        .as_ref()
        .map_or(0, |previous| previous.value.len());
    let last_state = if event.kind == EventKind::Deleted {
        event.value.len()
    } else {
        0
    };
    FIXED + event.key.len() + previous + last_state
}
