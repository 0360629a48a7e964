//! Partitions as a batch leaves them, before anybody sees them: what writes are checked against,
//! and what is made visible at once when the batch is on disk.

use crate::backend::Numbered;
use crate::history::Map;
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::state::{Partition, State, kind_of};
use crate::types::{Change, CommitError, Entry, Event, Expect, Notes, Write};
use std::collections::HashMap;
use std::sync::Arc;

/// Partition and key must fit the lengths of a record.
const KEY_BYTES_MAX: usize = 1024;

pub(super) struct Drafts {
    state: Arc<State>,
    by_partition: HashMap<Arc<str>, Draft>,
}

struct Draft {
    partition: Arc<Partition>,
    map: Map,
    events: Vec<Event>,
}

impl Draft {
    fn apply(&mut self, revision: Revision, record: &Record) {
        let (key, created) = (Arc::clone(&record.key), record.created);
        let value = record.value.clone();
        let previous = match record.operation {
            Operation::Put => {
                let entry = Entry {
                    created,
                    modified: revision,
                    value: value.clone(),
                };
                self.map.insert(Arc::clone(&key), entry)
            }
            Operation::Delete => self.map.remove(&key),
        };
        let kind = kind_of(record.operation, previous.is_some());
        self.events.push(Event {
            revision,
            key,
            kind,
            value,
            previous,
            created,
            notes: Notes::default(),
        });
    }
}

impl Drafts {
    pub(super) fn new(state: &Arc<State>) -> Self {
        Self {
            state: Arc::clone(state),
            by_partition: HashMap::new(),
        }
    }

    fn of(&mut self, partition: &Arc<str>) -> &mut Draft {
        let Self {
            state,
            by_partition,
        } = self;
        by_partition
            .entry(Arc::clone(partition))
            .or_insert_with(|| {
                let partition = state.partition(partition);
                let (_, map) = partition.current.read().clone();
                Draft {
                    partition,
                    map,
                    events: Vec::new(),
                }
            })
    }

    pub(super) fn check(
        &mut self,
        write: &Write,
        value_bytes_max: usize,
    ) -> Result<(), CommitError> {
        let (Change::Put(stamped) | Change::Delete(stamped)) = &write.change;
        let bytes = stamped.value.len();
        let length = bytes.max(write.key.len() * (value_bytes_max / KEY_BYTES_MAX));
        if length > value_bytes_max {
            return Err(CommitError::TooLarge {
                bytes,
                bytes_max: value_bytes_max,
            });
        }
        let previous = self.of(&write.partition).map.get(&write.key);
        expected(write.expect, previous)?;
        if previous.is_none() && matches!(write.change, Change::Delete(_)) {
            return Err(CommitError::NotFound);
        }
        Ok(())
    }

    /// Does a write that was checked; gives back what is to be kept of it.
    pub(super) fn apply(&mut self, revision: Revision, write: Write) -> Numbered {
        let (operation, stamped) = match write.change {
            Change::Put(stamped) => (Operation::Put, stamped),
            Change::Delete(stamped) => (Operation::Delete, stamped),
        };
        let draft = self.of(&write.partition);
        let previous = draft.map.get(&write.key);
        let record = Record {
            operation,
            partition: write.partition,
            key: write.key,
            created: previous.map_or(revision, |entry| entry.created),
            previous: previous.map(|entry| entry.modified),
            value: stamped.stamp(revision),
        };
        draft.apply(revision, &record);
        (revision, record)
    }

    /// Takes over what another server committed.
    pub(super) fn adopt(&mut self, revision: Revision, record: &Record) {
        self.of(&record.partition).apply(revision, record);
    }

    /// Makes everything visible, up to `last`. Events up to `persisted` are on disk. Returns how
    /// many there were.
    pub(super) fn publish(self, last: Revision, persisted: Revision) -> usize {
        let mut changed = Vec::new();
        let mut maps = Vec::new();
        let mut events = Vec::new();
        for draft in self.by_partition.into_values() {
            let Some(newest) = draft.events.last().map(|event| event.revision) else {
                continue;
            };
            changed.push((draft.partition, newest));
            maps.push((newest, draft.map));
            events.push(draft.events);
        }
        let count = events.iter().map(Vec::len).sum();
        // Map and history change together, so that an old state can be made from the two; and all
        // maps before anybody reads one, so that whoever sees a part of a group sees all of it.
        let (mut histories, mut currents) = (Vec::new(), Vec::new());
        for (partition, _) in &changed {
            histories.push(partition.history.lock());
            currents.push(partition.current.write());
        }
        for (current, map) in currents.iter_mut().zip(maps) {
            **current = map;
        }
        drop(currents);
        for (mut history, events) in histories.into_iter().zip(events) {
            for event in events {
                history.push(event, persisted);
            }
        }
        self.state.set_revision(last);
        for (partition, newest) in changed {
            partition.news.send_replace(newest);
        }
        count
    }
}

fn expected(expect: Expect, current: Option<&Entry>) -> Result<(), CommitError> {
    match (expect, current) {
        (Expect::Any, _) | (Expect::Absent, None) | (Expect::Present, Some(_)) => Ok(()),
        (Expect::Absent, Some(entry)) => Err(CommitError::Exists { at: entry.modified }),
        (Expect::Present, None) => Err(CommitError::NotFound),
        (Expect::At(revision), Some(entry)) if entry.modified == revision => Ok(()),
        (Expect::At(_), entry) => Err(CommitError::Conflict {
            current: entry.map(|entry| entry.modified),
        }),
    }
}
