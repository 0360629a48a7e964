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

#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Event>,
    from: Revision,
    bytes: usize,
    events_max: usize,
    bytes_max: usize,
}

impl History {
    pub(crate) fn new(from: Revision, events_max: usize, bytes_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            from,
            bytes: 0,
            events_max,
            bytes_max,
        }
    }

    /// `persisted` is the revision up to which everything is on disk.
    pub(crate) fn push(&mut self, event: Event, persisted: Revision) {
        self.bytes += weight(&event);
        self.events.push_back(event);
        while self.events.len() > self.events_max || self.bytes > self.bytes_max {
            match self.events.front() {
                Some(oldest) if oldest.revision <= persisted && self.events.len() > 1 => {}
                _ => break,
            }
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= weight(&oldest);
            self.from = oldest.revision;
        }
    }

    /// Every change after this revision is here.
    pub(crate) fn from(&self) -> Revision {
        self.from
    }

    /// The first change after a revision; the caller has made sure that it is not before `from`.
    pub(crate) fn first_after(&self, revision: Revision) -> Option<&Event> {
        let place = self
            .events
            .partition_point(|event| event.revision <= revision);
        self.events.get(place)
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
