//! What goes into the store and what comes out: writes, entries, events, errors.

use crate::revision::Revision;
use bytes::Bytes;
use parking_lot::Mutex;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

/// How soon a write must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before it is answered.
    Synced,
    /// Visible at once, on disk within seconds; a crash may lose it. For what is worthless after
    /// a crash or comes again by itself.
    Lazy,
    /// The same, on disk within a minute or two, and not at all when the key is renewed again before:
    /// the disk goes from the state before to the last one. For what is written over and over to say
    /// that somebody is still there.
    Renewal,
}

/// A value, and where in it the writer inserts the revision that it assigns, in decimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    pub value: Vec<u8>,
    pub revision_at: Option<usize>,
}

impl Stamped {
    pub(crate) fn stamp(self, revision: Revision) -> Bytes {
        let Some(at) = self.revision_at.filter(|at| *at <= self.value.len()) else {
            return self.value.into();
        };
        let digits = revision.to_string();
        let mut stamped = Vec::with_capacity(self.value.len() + digits.len());
        stamped.extend_from_slice(&self.value[..at]);
        stamped.extend_from_slice(digits.as_bytes());
        stamped.extend_from_slice(&self.value[at..]);
        stamped.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(Stamped),
    /// Carries the last state, for whoever watches.
    Delete(Stamped),
}

/// What must hold for a write to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Any,
    Absent,
    Present,
    /// The key was last changed at this revision.
    At(Revision),
}

#[derive(Clone, Debug)]
pub struct Write {
    pub partition: Arc<str>,
    pub key: Arc<str>,
    pub change: Change,
    pub expect: Expect,
    pub durability: Durability,
}

/// The current value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub created: Revision,
    pub modified: Revision,
    pub value: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change, as watchers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub revision: Revision,
    pub key: Arc<str>,
    pub kind: EventKind,
    /// The new value, or the last state of what was deleted.
    pub value: Bytes,
    /// What was there before; absent for `Added`.
    pub previous: Option<Entry>,
    /// When the key was created; of a deleted one, when it had been.
    pub created: Revision,
    pub notes: Notes,
}

/// What a reader made of an event, kept for the next one while the event is among the newest.
/// No part of the event: two events are equal whatever their notes, and a clone begins without.
#[derive(Default)]
pub struct Notes(Mutex<Kept>);

#[derive(Default)]
enum Kept {
    #[default]
    Nothing,
    Made(Arc<dyn Any + Send + Sync>),
    /// The event has aged: nothing is kept any more.
    Past,
}

impl Notes {
    /// The note of this type, made empty where there is none. A second type replaces the first.
    pub fn of<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut kept = self.0.lock();
        if let Kept::Made(note) = &*kept
            && let Ok(note) = Arc::clone(note).downcast::<T>()
        {
            return note;
        }
        let made = Arc::new(T::default());
        if !matches!(*kept, Kept::Past) {
            *kept = Kept::Made(Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        }
        made
    }

    pub(crate) fn forget(&self) {
        *self.0.lock() = Kept::Past;
    }
}

impl Clone for Notes {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Notes {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Notes {}

impl std::fmt::Debug for Notes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notes")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("the key exists, changed last at revision {at}")]
    Exists { at: Revision },
    #[error("the key does not exist")]
    NotFound,
    #[error("the key is not at the revision that was expected")]
    Conflict { current: Option<Revision> },
    #[error("the value has {bytes} bytes, at most {bytes_max} are kept")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the store is closed")]
    Closed,
    #[error("the disk refused the write: {0}")]
    Backend(String),
    #[error(
        "no space is left on the disk of the server's data directory: nothing is written until \
         there is"
    )]
    Full,
}

/// Why a group of writes was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write {place} of the group: {error}")]
pub struct GroupError {
    /// The first write that could not be done; 0 when it was none of them.
    pub place: usize,
    pub error: CommitError,
}

impl From<CommitError> for GroupError {
    fn from(error: CommitError) -> Self {
        Self { place: 0, error }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the directory {}", .directory.display())]
    Directory {
        directory: PathBuf,
        source: std::io::Error,
    },
    #[error("the store in {} is in use by another process", .directory.display())]
    InUse { directory: PathBuf },
    #[error(
        "the store in {} is of format {found}; this version reads format {known}",
        .directory.display()
    )]
    Format {
        directory: PathBuf,
        found: String,
        known: u32,
    },
    #[error(
        "the store in {} is damaged: {what}. It is left as it is; `coracle server --data-dir DIR \
         --restore-snapshot` puts the newest snapshot in its place",
        .directory.display()
    )]
    Damaged { directory: PathBuf, what: String },
    #[error("the store in {} cannot be opened: {what}. Nothing was changed", .directory.display())]
    Sealed { directory: PathBuf, what: String },
    #[error("cannot start the writer of the store")]
    Writer(#[source] std::io::Error),
}
