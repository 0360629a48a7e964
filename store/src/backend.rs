//! What keeps records for good.
//!
//! The store above holds the current state in memory; a back end keeps records by revision and a
//! few numbers beside them. One that is shared with other servers also refuses what no longer
//! fits, and tells what others committed: nothing above assumes that all commits are its own.

use crate::record::{Link, Record};
use crate::revision::Revision;
use crate::seal::SealError;
use crate::types::CommitError;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

mod sled;

pub(crate) use self::sled::SledBackend;

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum BackendError {
    #[error("{0}")]
    Io(String),
    /// Of the disk, or of what its owner may use of it.
    #[error("no space is left on the disk")]
    Full,
    #[error("the record of revision {revision} cannot be trusted: {why}")]
    Damaged { revision: Revision, why: String },
    #[error("{0}")]
    Sealed(String),
    #[error("it is of format {found}")]
    Format { found: String },
    /// Another server committed first: nothing of the batch was kept. Only a back end that is
    /// shared says so.
    #[allow(dead_code)]
    #[error("another server committed first")]
    Overtaken,
}

/// What a back end found when it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// History at and before this is gone.
    pub(crate) compacted: Revision,
    /// No revision up to this is ever given out again.
    pub(crate) reserved: Revision,
    /// Records that would be written in another form today: plain, or sealed otherwise.
    pub(crate) stale: u64,
}

impl From<io::Error> for BackendError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<BackendError> for CommitError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Full => Self::Full,
            other => Self::Backend(other.to_string()),
        }
    }
}

impl From<SealError> for BackendError {
    fn from(error: SealError) -> Self {
        Self::Sealed(error.to_string())
    }
}

pub(crate) type Numbered = (Revision, Record);

/// The writer's side: one owner.
pub(crate) trait Backend: Send {
    /// Calls `visit` for every record, in order of revision.
    fn load(&mut self, visit: &mut dyn FnMut(Revision, Record)) -> Result<Loaded, BackendError>;

    /// Keeps a batch, all of it or none, crash or not; on stable storage when it returns. Each
    /// record's `previous` is what its key must be at, and the first revision must be the next one:
    /// else it is `Overtaken`.
    fn commit(&mut self, batch: &[Numbered]) -> Result<(), BackendError>;

    /// Promises that no revision up to this is given out again, crash or not.
    fn reserve(&mut self, up_to: Revision) -> Result<(), BackendError>;

    /// What others committed since this was last asked, in order of revision.
    fn foreign(&mut self) -> Result<Vec<Numbered>, BackendError>;

    /// Drops history: the records in `steps` are superseded or tombstones; from now on `to` and
    /// before is gone.
    fn compact(&mut self, drop: &[Revision], to: Revision) -> Result<(), BackendError>;

    /// An empty one of the same kind in a directory of its own, to take this one's place.
    fn beside(&self, directory: &Path) -> Result<Box<dyn Backend>, BackendError>;

    fn reader(&self) -> Arc<dyn Reader>;
}

/// The readers' side: any number, any thread.
pub(crate) trait Reader: Send + Sync {
    /// At most `count` records after a revision, in order.
    fn after(&self, revision: Revision, count: usize) -> Result<Vec<Numbered>, BackendError>;

    /// Of at most `count` records after a revision, in order, what they did.
    fn links(&self, after: Revision, count: usize) -> Result<Vec<(Revision, Link)>, BackendError>;

    fn at(&self, revision: Revision) -> Result<Option<Record>, BackendError>;

    /// Bytes on disk; asks the file system.
    fn size(&self) -> u64;
}
