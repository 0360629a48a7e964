//! Encrypts the cluster's keys with a passphrase: PBKDF2-HMAC-SHA256 makes a key of it and of salt
//! that is used once, AES-256-GCM seals with that. So the nonce may be zero.

use super::key_files::{KeyFiles, KeyFilesError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Shorter ones are guessed, whatever stands between.
pub const PASSPHRASE_CHARS_MIN: usize = 12;
/// What OWASP asks for; a third of a second on a small machine.
const ITERATIONS: u32 = 600_000;
/// A file that asks for more wants to keep its reader busy.
const ITERATIONS_MAX: u32 = 10_000_000;
const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 32;
const CONTEXT: &[u8] = b"coracle snapshot keys 1";

/// Keys as they stand in a snapshot.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedKeys {
    iterations: u32,
    salt: String,
    sealed: String,
}

/// Made of a passphrase: seals one snapshot's keys, or opens them.
pub struct SealingKey {
    iterations: u32,
    salt: Vec<u8>,
    key: [u8; KEY_BYTES],
}

/// Says nothing of the key.
impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey").finish_non_exhaustive()
    }
}

/// How a sealing key is sent to the server that uses it, so that the passphrase never is.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    iterations: u32,
    salt: String,
    key: String,
}

impl SealingKey {
    /// For a new snapshot.
    pub fn new(passphrase: &str) -> Result<Self, KeyFilesError> {
        let mut salt = vec![0; SALT_BYTES];
        let filled = SystemRandom::new().fill(&mut salt);
        filled.map_err(|_| KeyFilesError::Random)?;
        Self::of(passphrase, salt, ITERATIONS)
    }

    /// Weak, and quick to make where nothing is optimized.
    #[cfg(test)]
    pub(super) fn of_test(passphrase: &str) -> Self {
        let mut salt = vec![0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).unwrap();
        Self::of(passphrase, salt, 1000).unwrap()
    }

    fn of(passphrase: &str, salt: Vec<u8>, iterations: u32) -> Result<Self, KeyFilesError> {
        let rounds = NonZeroU32::new(iterations)
            .filter(|rounds| rounds.get() <= ITERATIONS_MAX)
            .ok_or_else(|| bad("its count of iterations is out of bounds"))?;
        let mut key = [0; KEY_BYTES];
        derive(
            PBKDF2_HMAC_SHA256,
            rounds,
            &salt,
            passphrase.as_bytes(),
            &mut key,
        );
        Ok(Self {
            iterations,
            salt,
            key,
        })
    }

    fn cipher(&self) -> LessSafeKey {
        let key = UnboundKey::new(&AES_256_GCM, &self.key);
        LessSafeKey::new(key.expect("the key has the cipher's length"))
    }

    pub fn seal(&self, files: &KeyFiles) -> SealedKeys {
        let mut bytes = files.to_bytes();
        self.cipher()
            .seal_in_place_append_tag(nonce(), Aad::from(CONTEXT), &mut bytes)
            .expect("files of keys are far below the cipher's bound");
        SealedKeys {
            iterations: self.iterations,
            salt: STANDARD.encode(&self.salt),
            sealed: STANDARD.encode(bytes),
        }
    }

    /// JSON for a server that seals with it.
    pub fn to_text(&self) -> String {
        let sent = Sent {
            iterations: self.iterations,
            salt: STANDARD.encode(&self.salt),
            key: STANDARD.encode(self.key),
        };
        serde_json::to_string(&sent).expect("texts and a number are plain JSON")
    }

    /// Nothing when the text is not one of `to_text`.
    pub(super) fn from_text(text: &[u8]) -> Option<Self> {
        let sent: Sent = serde_json::from_slice(text).ok()?;
        let salt = STANDARD.decode(&sent.salt).ok()?;
        let key = STANDARD.decode(&sent.key).ok()?;
        let is_sound = salt.len() == SALT_BYTES && (1..=ITERATIONS_MAX).contains(&sent.iterations);
        is_sound.then_some(Self {
            iterations: sent.iterations,
            salt,
            key: key.try_into().ok()?,
        })
    }
}

impl SealedKeys {
    pub fn open(&self, passphrase: &str) -> Result<KeyFiles, KeyFilesError> {
        let decode = |text: &str| {
            STANDARD
                .decode(text)
                .map_err(|_| bad("they are not base64"))
        };
        let (salt, mut sealed) = (decode(&self.salt)?, decode(&self.sealed)?);
        let key = SealingKey::of(passphrase, salt, self.iterations)?;
        let plain = key
            .cipher()
            .open_in_place(nonce(), Aad::from(CONTEXT), &mut sealed)
            .map_err(|_| KeyFilesError::Passphrase)?;
        KeyFiles::from_bytes(plain)
    }
}

fn bad(why: &str) -> KeyFilesError {
    KeyFilesError::Bad(why.to_owned())
}

/// The key is used once.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests;
