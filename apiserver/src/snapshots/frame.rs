//! The bytes of a snapshot: the line `coracle-snapshot 1`, the length of the header (4,
//! big-endian), the header (JSON), the objects as the store writes them, SHA-256 of all before (32).
//!
//! A file of the store's own ring, which is its third part alone, is read too.

use super::passphrase::SealedKeys;
use coracle_store::{
    Frozen, Seal, SnapshotContents, SnapshotFacts, SnapshotFileError, check_snapshot, read_snapshot,
};
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8] = b"coracle-snapshot 1\n";
/// Far more than the keys of a cluster take.
const HEADER_BYTES_MAX: u32 = 32 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot read the snapshot {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("the snapshot {} is damaged: {why}", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the snapshot {} cannot be opened: {why}", .file.display())]
    Sealed { file: PathBuf, why: String },
}

impl SnapshotError {
    fn of(file: &Path, error: SnapshotFileError) -> Self {
        let file = file.to_owned();
        match error {
            SnapshotFileError::Io(source) => Self::Io { file, source },
            SnapshotFileError::Damaged(why) => Self::Damaged { file, why },
            SnapshotFileError::Sealed(why) => Self::Sealed { file, why },
        }
    }
}

/// What a snapshot says of itself. Others may be there in files of later versions.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// RFC 3339.
    pub created: String,
    /// Of the program that wrote it.
    pub version: String,
    /// SHA-256 of the certificate of the cluster's CA, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<SealedKeys>,
}

/// Writes a whole snapshot and gives back its SHA-256. Needs memory for one record at a time.
pub fn write(out: impl Write, header: &Header, objects: &Frozen) -> io::Result<String> {
    let mut out = Hashing::new(out);
    let text = serde_json::to_vec(header).map_err(io::Error::other)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(&text)?;
    objects.write(&mut out)?;
    let sum = out.sum();
    out.inner.write_all(&sum)?;
    out.inner.flush()?;
    Ok(hex::encode(sum))
}

/// A snapshot that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// None of a file of the store's ring.
    pub header: Option<Header>,
    pub facts: SnapshotFacts,
    pub sha256: String,
    pub bytes: u64,
}

/// Checks all of a file that can be checked without keys.
pub fn verify(file: &Path) -> Result<Verified, SnapshotError> {
    let checked = open(file).and_then(check);
    checked.map_err(|error| SnapshotError::of(file, error))
}

/// The same of bytes from anywhere.
pub fn check(input: impl BufRead) -> Result<Verified, SnapshotFileError> {
    let mut input = Hashing::new(input);
    let header = header(&mut input)?;
    let facts = check_snapshot(&mut input)?;
    let sum = input.sum();
    if header.is_some() {
        let mut told = [0; SHA256_OUTPUT_LEN];
        input.fill(&mut told)?;
        if told != sum {
            return Err(damaged("its SHA-256 is wrong"));
        }
    }
    if input.read(&mut [0]).map_err(SnapshotFileError::Io)? > 0 {
        return Err(damaged("something follows its end"));
    }
    Ok(Verified {
        header,
        facts,
        sha256: hex::encode(sum),
        bytes: input.bytes,
    })
}

/// Reads the objects of a file that was verified, and opens what is sealed of them.
pub fn objects(file: &Path, seal: Arc<dyn Seal>) -> Result<SnapshotContents, SnapshotError> {
    let read = || {
        let mut input = Hashing::new(open(file)?);
        header(&mut input)?;
        read_snapshot(&mut input, Some(seal))
    };
    read().map_err(|error| SnapshotError::of(file, error))
}

fn open(file: &Path) -> Result<BufReader<File>, SnapshotFileError> {
    let file = File::open(file).map_err(SnapshotFileError::Io)?;
    Ok(BufReader::new(file))
}

/// None where there is none because it is a file of the ring.
fn header<R: BufRead>(input: &mut Hashing<R>) -> Result<Option<Header>, SnapshotFileError> {
    let begin = input.inner.fill_buf().map_err(SnapshotFileError::Io)?;
    if !begin.starts_with(MAGIC) {
        return Ok(None);
    }
    input.fill(&mut [0; MAGIC.len()])?;
    let mut length = [0; 4];
    input.fill(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > HEADER_BYTES_MAX {
        return Err(damaged("its header is too long"));
    }
    let mut text = vec![0; length as usize];
    input.fill(&mut text)?;
    let header = serde_json::from_slice(&text);
    header
        .map(Some)
        .map_err(|error| damaged(&format!("its header cannot be read: {error}")))
}

fn damaged(why: &str) -> SnapshotFileError {
    SnapshotFileError::Damaged(why.to_owned())
}

/// Sums up and counts what passes through.
struct Hashing<T> {
    inner: T,
    context: Context,
    bytes: u64,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            context: Context::new(&SHA256),
            bytes: 0,
        }
    }

    fn sum(&self) -> [u8; SHA256_OUTPUT_LEN] {
        let sum = self.context.clone().finish();
        sum.as_ref().try_into().expect("SHA-256 has this length")
    }

    fn passed(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.passed(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.passed(&bytes[..count]);
        Ok(count)
    }
}

impl<R: Read> Hashing<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotFileError> {
        self.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut off"),
            _ => SnapshotFileError::Io(error),
        })
    }
}

#[cfg(test)]
mod tests;
