//! A partition at a revision: immutable, cheap to clone, unaffected by later writes.

use crate::backend::BackendError;
use crate::history::{Map, undo};
use crate::revision::Revision;
use crate::state::{Partition, State};
use crate::types::Entry;
use std::ops::Bound;
use std::sync::Arc;

/// Records read from disk at a time while an old state is put together.
const RECORDS_PER_READ: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("revision {asked} is gone, the oldest kept is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    #[error("revision {asked} is in the future, the newest is {current}")]
    Future { asked: Revision, current: Revision },
    #[error("history cannot be read: {0}")]
    Backend(String),
}

impl From<BackendError> for SnapshotError {
    fn from(error: BackendError) -> Self {
        Self::Backend(error.to_string())
    }
}

#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    map: Map,
}

impl Snapshot {
    pub(crate) fn newest(state: &State, partition: &Partition) -> Self {
        // In this order: what the map shows beyond the first is covered by the second.
        let visible = state.revision();
        let (changed, map) = partition.current.read().clone();
        Self {
            revision: visible.max(changed),
            map,
        }
    }

    pub(crate) fn at(
        state: &State,
        partition: &Partition,
        at: Revision,
    ) -> Result<Self, SnapshotError> {
        let newest = Self::newest(state, partition);
        if at > newest.revision {
            return Err(SnapshotError::Future {
                asked: at,
                current: newest.revision,
            });
        }
        let readable = state.readable();
        if at < readable {
            return Err(SnapshotError::Compacted {
                asked: at,
                oldest: readable,
            });
        }
        let (mut map, from) = {
            // Both under the history's lock, which the writer holds while it changes both.
            let history = partition.history.lock();
            let (_, mut map) = partition.current.read().clone();
            let from = history.from();
            history.undo(&mut map, at.max(from));
            (map, from)
        };
        if at < from {
            undo_from_disk(state, partition, &mut map, at, from)?;
            let compacted = state.compacted();
            if at < compacted {
                return Err(SnapshotError::Compacted {
                    asked: at,
                    oldest: compacted,
                });
            }
        }
        Ok(Self { revision: at, map })
    }

    /// The store's revision at which this is the state of the partition.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.map.get(key)
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.map.iter()
    }

    /// The keys that begin with `prefix` and come after `after`, in order.
    pub fn range_from<'a>(&'a self, after: &str, prefix: &'a str) -> Range<'a> {
        let start = if after >= prefix && !after.is_empty() {
            Bound::Excluded(Arc::from(after))
        } else {
            Bound::Included(Arc::from(prefix))
        };
        let range = self.map.range::<_, Arc<str>>((start, Bound::Unbounded));
        Range {
            inner: Box::new(range.take_while(move |(key, _)| key.starts_with(prefix))),
        }
    }
}

/// Keys and entries of a snapshot, in order.
pub struct Range<'a> {
    inner: Box<dyn Iterator<Item = (&'a Arc<str>, &'a Entry)> + Send + 'a>,
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a Arc<str>, &'a Entry);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next()
    }
}

/// Takes back, newest first, the changes in (`at`, `from`].
fn undo_from_disk(
    state: &State,
    partition: &Partition,
    map: &mut Map,
    at: Revision,
    from: Revision,
) -> Result<(), SnapshotError> {
    let mut events = Vec::new();
    let mut read_to = at;
    while read_to < from {
        let (found, complete) =
            state.read_history(&partition.name, read_to, RECORDS_PER_READ, from)?;
        events.extend(found.into_iter().filter(|event| event.revision <= from));
        if complete == read_to {
            break;
        }
        read_to = complete;
    }
    for event in events.iter().rev() {
        undo(map, event);
    }
    Ok(())
}
