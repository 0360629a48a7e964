//! Revisions on disk and in memory: commit, read at a revision, watch, compact, snapshot.
//!
//! Knows bytes, keys and revisions; no JSON, no kinds, no HTTP. One writer owns the tail, readers
//! never wait for it. A panic in here ends the process: half a state is worse than a restart.
//! See docs/store.md.

mod revision;
mod types; // What goes in and comes out: writes, entries, events, errors.

mod record; // One change as it stands on disk.
mod seal; // Values that are no plain text there.

mod backend; // The trait, and sled behind it.
mod lock; // On a file that may be let go in a moment.

mod history; // The newest changes of a partition, in memory.
mod mark; // What must be in the back end.
mod state; // Partitions: the current map and its history.

mod snapshot; // A partition at a revision.
mod watch; // A partition's changes from a revision on.

mod archive; // Snapshot files, their ring, and restoring one.
mod writer; // The one writer.

mod store; // The handle.

pub use archive::{
    Frozen, RestoreError, Restored, SnapshotContents, SnapshotFacts, SnapshotFileError,
    check_snapshot, read_snapshot, restore_newest_snapshot, restore_snapshot,
};
pub use revision::Revision;
pub use seal::{Seal, SealError};
pub use snapshot::{Range, Snapshot, SnapshotError};
pub use store::{Config, Rewritten, Stats, Store};
pub use types::{
    Change, CommitError, Durability, Entry, Event, EventKind, Expect, GroupError, Notes, OpenError,
    Stamped, Write,
};
pub use watch::{Watch, WatchClosed, WatchError};
