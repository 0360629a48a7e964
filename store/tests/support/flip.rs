//! A seal whose sealed form can be told from plain text, and whose keys from one another. It hides
//! nothing: what the store does with any seal is what is tested.

use coracle_store::{Seal, SealError};
use std::sync::atomic::{AtomicU8, Ordering};

/// The partition that is sealed.
pub const SEALED: &str = "/secrets";

/// Seals with one key, opens with those up to it.
pub struct Flip {
    pub key: AtomicU8,
    /// Keys below this are lost.
    pub oldest: AtomicU8,
}

impl Flip {
    pub fn new(key: u8) -> Self {
        Self {
            key: AtomicU8::new(key),
            oldest: AtomicU8::new(0),
        }
    }
}

/// What a text looks like when it is sealed with a key; not what it is bound to.
pub fn flipped(key: u8, text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| byte ^ (0x80 | key)).collect()
}

impl Seal for Flip {
    fn seal(&self, partition: &str, key: &str, plain: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        if partition != SEALED {
            return Ok(None);
        }
        let own = self.key.load(Ordering::SeqCst);
        let bound = [key.as_bytes(), b"\0", plain].concat();
        Ok(Some([vec![own], flipped(own, &bound)].concat()))
    }

    fn open(&self, _partition: &str, key: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let own = sealed[0];
        if own < self.oldest.load(Ordering::SeqCst) || own > self.key.load(Ordering::SeqCst) {
            return Err(SealError(format!(
                "it is sealed with the key {own}, which is not here"
            )));
        }
        let bound = flipped(own, &sealed[1..]);
        bound
            .strip_prefix([key.as_bytes(), b"\0"].concat().as_slice())
            .map(<[u8]>::to_vec)
            .ok_or_else(|| SealError("it was sealed for another key".to_owned()))
    }

    fn is_current(&self, partition: &str, sealed: Option<&[u8]>) -> bool {
        match sealed {
            None => partition != SEALED,
            Some(sealed) => partition == SEALED && sealed[0] == self.key.load(Ordering::SeqCst),
        }
    }
}
