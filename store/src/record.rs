//! One change as it stands on disk.
//!
//! Layout, numbers big-endian: crc32 of all that follows (4), operation (1, with its highest bit set
//! when the value is sealed), created (8), previous (8, zero for none), length of the
//! partition (2), length of the key (2), partition, key, value. The key under which a record is stored is its revision.

use crate::revision::Revision;
use bytes::Bytes;
use std::sync::Arc;

const SEALED: u8 = 0x80;
const HEAD: usize = 4 + 1 + 8 + 8 + 2 + 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Put,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) operation: Operation,
    pub(crate) partition: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) created: Revision,
    /// The revision that this one supersedes.
    pub(crate) previous: Option<Revision>,
    pub(crate) value: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("it is cut off")]
    Short,
    #[error("its checksum is wrong")]
    Checksum,
    #[error("its operation is unknown")]
    Operation,
    #[error("its key is no text")]
    Text,
}

impl Record {
    /// Bytes it takes on disk.
    pub(crate) fn weight(&self) -> u64 {
        (HEAD + self.partition.len() + self.key.len() + self.value.len()) as u64
    }

    /// `sealed` takes the place of the value.
    pub(crate) fn encode(&self, sealed: Option<&[u8]>) -> Vec<u8> {
        let value = sealed.unwrap_or(&self.value);
        let length = HEAD + self.partition.len() + self.key.len() + value.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&[0; 4]);
        let operation = match self.operation {
            Operation::Put => 1,
            Operation::Delete => 2,
        };
        let flag = sealed.map_or(0, |_| SEALED);
        bytes.push(operation | flag);
        bytes.extend_from_slice(&self.created.0.to_be_bytes());
        bytes.extend_from_slice(&self.previous.map_or(0, |previous| previous.0).to_be_bytes());
        for text in [&self.partition, &self.key] {
            let length = u16::try_from(text.len()).expect("the writer refuses longer keys");
            bytes.extend_from_slice(&length.to_be_bytes());
        }
        bytes.extend_from_slice(self.partition.as_bytes());
        bytes.extend_from_slice(self.key.as_bytes());
        bytes.extend_from_slice(value);
        let checksum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// The record, and whether its value is sealed. `intern` shares the text of partitions and keys
    /// that are known already.
    pub(crate) fn decode(
        bytes: &[u8],
        mut intern: impl FnMut(&str) -> Arc<str>,
    ) -> Result<(Self, bool), RecordError> {
        let Link {
            operation,
            previous,
        } = Link::decode(bytes)?;
        let is_sealed = bytes[4] & SEALED != 0;
        let created = Revision(u64::from_be_bytes(array(&bytes[5..13])));
        let partition_end = HEAD + usize::from(u16::from_be_bytes(array(&bytes[21..23])));
        let key_end = partition_end + usize::from(u16::from_be_bytes(array(&bytes[23..25])));
        if bytes.len() < key_end {
            return Err(RecordError::Short);
        }
        let text = |range: &[u8]| std::str::from_utf8(range).map(str::to_owned);
        let partition = text(&bytes[HEAD..partition_end]).map_err(|_| RecordError::Text)?;
        let key = text(&bytes[partition_end..key_end]).map_err(|_| RecordError::Text)?;
        let record = Self {
            operation,
            partition: intern(&partition),
            key: intern(&key),
            created,
            previous,
            value: Bytes::copy_from_slice(&bytes[key_end..]),
        };
        Ok((record, is_sealed))
    }
}

/// What a record did, and to what: all that compaction asks, sealed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) operation: Operation,
    /// The revision that it supersedes.
    pub(crate) previous: Option<Revision>,
}

impl Link {
    /// Of a record's bytes, all of which are checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() < HEAD {
            return Err(RecordError::Short);
        }
        let checksum = u32::from_be_bytes(array(&bytes[..4]));
        if crc32fast::hash(&bytes[4..]) != checksum {
            return Err(RecordError::Checksum);
        }
        let operation = match bytes[4] & !SEALED {
            1 => Operation::Put,
            2 => Operation::Delete,
            _ => return Err(RecordError::Operation),
        };
        let previous = Revision(u64::from_be_bytes(array(&bytes[13..21])));
        Ok(Self {
            operation,
            previous: (previous.0 > 0).then_some(previous),
        })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the slice was cut to this length")
}

#[cfg(test)]
mod tests;
