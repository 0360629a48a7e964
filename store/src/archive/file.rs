//! Snapshot files as bytes: a frozen state written to any sink, and read back with everything
//! checked.
//!
//! Layout, numbers big-endian: the line `coracle-store-snapshot 1`, the revision (8), the count of
//! entries (8), then for each entry its revision (8), the length of its record (4) and the record
//! (see `record.rs`); at the end the crc32 of all before (4). Nothing longer than one record is in
//! memory at a time, beside what the caller keeps.

use crate::backend::Numbered;
use crate::history::Map;
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::seal::{Codec, DecodeError, Seal};
use crate::state::State;
use std::io::{Read, Write};
use std::sync::Arc;

pub(crate) const MAGIC: &[u8] = b"coracle-store-snapshot 1\n";
/// Twice the largest value that is kept: a length beyond this is damage, not a reason to allocate.
const RECORD_BYTES_MAX: u32 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    #[error("it cannot be read")]
    Io(#[source] std::io::Error),
    #[error("{0}")]
    Damaged(String),
    /// Sound, and not to be opened with the keys at hand.
    #[error("{0}")]
    Sealed(String),
}

fn damaged(why: impl std::fmt::Display) -> SnapshotFileError {
    SnapshotFileError::Damaged(why.to_string())
}

impl From<DecodeError> for SnapshotFileError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Record(error) => damaged(error),
            DecodeError::Sealed(why) => Self::Sealed(why),
        }
    }
}

/// The whole state at one revision, on its way into a file. The store goes on meanwhile; what it
/// supersedes stays in memory until this is dropped.
pub struct Frozen {
    revision: Revision,
    partitions: Vec<(Arc<str>, Map)>,
    codec: Codec,
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen")
            .field("revision", &self.revision)
            .field("entries", &self.entries())
            .finish_non_exhaustive()
    }
}

impl Frozen {
    /// On the writer's thread, between batches: all partitions are at the same revision. Takes a
    /// pointer a partition.
    pub(crate) fn of(state: &State, codec: &Codec) -> Self {
        let partitions = state.partitions().into_iter().map(|partition| {
            let map = partition.current.read().1.clone();
            (Arc::clone(&partition.name), map)
        });
        Self {
            revision: state.revision(),
            partitions: partitions.collect(),
            codec: codec.clone(),
        }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn entries(&self) -> u64 {
        self.partitions
            .iter()
            .map(|(_, map)| map.len() as u64)
            .sum()
    }

    /// Each entry as a record that follows none.
    pub(crate) fn records(&self) -> impl Iterator<Item = Numbered> {
        self.partitions.iter().flat_map(|(name, map)| {
            map.iter().map(move |(key, entry)| {
                let record = Record {
                    operation: Operation::Put,
                    partition: Arc::clone(name),
                    key: Arc::clone(key),
                    created: entry.created,
                    previous: None,
                    value: entry.value.clone(),
                };
                (entry.modified, record)
            })
        })
    }

    pub fn write(&self, out: impl Write) -> std::io::Result<()> {
        let (revision, count) = (self.revision, self.entries());
        write(out, &self.codec, revision, count, self.records())
    }
}

pub(super) fn write(
    out: impl Write,
    codec: &Codec,
    revision: Revision,
    count: u64,
    entries: impl Iterator<Item = Numbered>,
) -> std::io::Result<()> {
    let mut out = Summing::new(out);
    out.write_all(MAGIC)?;
    out.write_all(&revision.0.to_be_bytes())?;
    out.write_all(&count.to_be_bytes())?;
    for (revision, record) in entries {
        let bytes = codec.encode(&record).map_err(std::io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
        out.write_all(&revision.0.to_be_bytes())?;
        out.write_all(&length.to_be_bytes())?;
        out.write_all(&bytes)?;
    }
    let sum = out.sum.clone().finalize();
    out.write_all(&sum.to_be_bytes())
}

/// Sums up what passes through.
struct Summing<T> {
    inner: T,
    sum: crc32fast::Hasher,
}

impl<T> Summing<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            sum: crc32fast::Hasher::new(),
        }
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Summing<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotFileError> {
        self.inner
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => damaged("it is cut off"),
                _ => SnapshotFileError::Io(error),
            })?;
        self.sum.update(bytes);
        Ok(())
    }

    fn number(&mut self) -> Result<u64, SnapshotFileError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn length(&mut self) -> Result<u32, SnapshotFileError> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }
}

/// Gives each record to `visit`, as it stands; what follows the snapshot is left unread. What was
/// visited can be trusted only when this ends well.
fn read(
    input: impl Read,
    mut visit: impl FnMut(Revision, &[u8]) -> Result<(), SnapshotFileError>,
) -> Result<(Revision, u64), SnapshotFileError> {
    let mut input = Summing::new(input);
    let mut magic = [0; MAGIC.len()];
    input.fill(&mut magic)?;
    if magic != MAGIC {
        return Err(damaged("it is no snapshot"));
    }
    let (revision, count) = (Revision(input.number()?), input.number()?);
    if revision > Revision::MAX {
        return Err(damaged(format!("no store comes to revision {revision}")));
    }
    let mut record = Vec::new();
    for _ in 0..count {
        let modified = Revision(input.number()?);
        if modified > revision {
            return Err(damaged(format!(
                "it is of revision {revision} and has one of {modified}"
            )));
        }
        let length = input.length()?;
        if length > RECORD_BYTES_MAX {
            return Err(damaged(format!("it says that a record has {length} bytes")));
        }
        record.resize(length as usize, 0);
        input.fill(&mut record)?;
        visit(modified, &record)?;
    }
    let sum = input.sum.clone().finalize();
    match input.length()? == sum {
        true => Ok((revision, count)),
        false => Err(damaged("its checksum is wrong")),
    }
}

/// A snapshot in memory.
pub struct SnapshotContents {
    pub revision: Revision,
    /// In order of revision.
    pub(crate) entries: Vec<Numbered>,
    /// Everything is in the form in which it would be written today.
    pub(crate) is_current: bool,
}

impl std::fmt::Debug for SnapshotContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotContents")
            .field("revision", &self.revision)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// What a snapshot says without its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    pub revision: Revision,
    pub entries: u64,
    /// How many of them are sealed.
    pub sealed: u64,
}

/// Reads a snapshot whole, checks all of it and opens what is sealed in it with `seal`.
pub fn read_snapshot(
    input: impl Read,
    seal: Option<Arc<dyn Seal>>,
) -> Result<SnapshotContents, SnapshotFileError> {
    contents(input, &Codec::new(seal))
}

pub(super) fn contents(
    input: impl Read,
    codec: &Codec,
) -> Result<SnapshotContents, SnapshotFileError> {
    let mut entries = Vec::new();
    let mut is_current = true;
    let (revision, _) = read(input, |modified, bytes| {
        let (record, current) = codec.decode(bytes, |text| text.into())?;
        is_current &= current;
        entries.push((modified, record));
        Ok(())
    })?;
    entries.sort_by_key(|(revision, _)| *revision);
    Ok(SnapshotContents {
        revision,
        entries,
        is_current,
    })
}

/// Checks all of a snapshot that can be checked without keys.
pub fn check_snapshot(input: impl Read) -> Result<SnapshotFacts, SnapshotFileError> {
    let mut sealed = 0;
    let (revision, entries) = read(input, |_, bytes| {
        let (_, is_sealed) = Record::decode(bytes, |text| text.into()).map_err(damaged)?;
        sealed += u64::from(is_sealed);
        Ok(())
    })?;
    Ok(SnapshotFacts {
        revision,
        entries,
        sealed,
    })
}

#[cfg(test)]
mod tests;
