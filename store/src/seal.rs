//! Values that are no plain text on disk.
//!
//! Whoever opens the store may bring something that seals values on their way to the disk and
//! opens them on their way back. In memory they are plain. A record says whether it is sealed, so
//! that plain and sealed ones live side by side.

use crate::record::{Record, RecordError};
use std::sync::Arc;

/// Why a value was not sealed or not opened, in the words of whoever seals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SealError(pub String);

/// Seals values and opens them. What was sealed for one key must not open for another.
pub trait Seal: Send + Sync {
    /// `None` when values of the partition are kept as they are.
    fn seal(&self, partition: &str, key: &str, plain: &[u8]) -> Result<Option<Vec<u8>>, SealError>;

    fn open(&self, partition: &str, key: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError>;

    /// Whether `seal` would write the value in this form today; `None` is a plain one.
    fn is_current(&self, partition: &str, sealed: Option<&[u8]>) -> bool;
}

/// Encodes and decodes records, sealing what is to be sealed.
#[derive(Clone, Default)]
pub(crate) struct Codec(Option<Arc<dyn Seal>>);

impl Codec {
    pub(crate) fn new(seal: Option<Arc<dyn Seal>>) -> Self {
        Self(seal)
    }

    pub(crate) fn encode(&self, record: &Record) -> Result<Vec<u8>, SealError> {
        let sealed = match &self.0 {
            Some(seal) => seal.seal(&record.partition, &record.key, &record.value)?,
            None => None,
        };
        Ok(record.encode(sealed.as_deref()))
    }

    /// The record with its plain value, and whether it would be written in this form today.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        intern: impl FnMut(&str) -> Arc<str>,
    ) -> Result<(Record, bool), DecodeError> {
        let (mut record, is_sealed) = Record::decode(bytes, intern)?;
        let Some(seal) = &self.0 else {
            return match is_sealed {
                true => Err(DecodeError::Sealed(not_opened(
                    &record,
                    &SealError("it is sealed, and there is no key".to_owned()),
                ))),
                false => Ok((record, true)),
            };
        };
        if !is_sealed {
            let is_current = seal.is_current(&record.partition, None);
            return Ok((record, is_current));
        }
        let is_current = seal.is_current(&record.partition, Some(&record.value));
        let opened = seal
            .open(&record.partition, &record.key, &record.value)
            .map_err(|error| DecodeError::Sealed(not_opened(&record, &error)))?;
        record.value = opened.into();
        Ok((record, is_current))
    }
}

fn not_opened(record: &Record, error: &SealError) -> String {
    format!("{} {}: {error}", record.partition, record.key)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The bytes are sound, and not to be opened with what is at hand.
    #[error("{0}")]
    Sealed(String),
}
