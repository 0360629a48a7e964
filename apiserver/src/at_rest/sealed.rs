//! The bytes of a sealed value, and the ciphers behind it.
//!
//! Layout: the version 1, the cipher (1), the length of the key's name (1), the name, 32 random
//! bytes, the ciphertext with its tag. Each value has a key of its own, derived from the random
//! bytes with HKDF-SHA256 and used once, so that its nonce may be zero. All that stands before the
//! ciphertext, the partition and the key of the value are checked with it.

use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

const VERSION: u8 = 1;
const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const INFO: &[&[u8]] = &[b"coracle secrets at rest"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Cipher {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes256Gcm => &AES_256_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    fn of(number: u8) -> Option<Self> {
        [Self::Aes256Gcm, Self::ChaCha20Poly1305]
            .into_iter()
            .find(|cipher| cipher.number() == number)
    }
}

/// One key, by the name that is written beside what it seals.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) cipher: Cipher,
    pub(super) secret: Vec<u8>,
}

/// Says everything but the key.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("name", &self.name)
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

/// What a sealed value says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) cipher: Cipher,
    pub(super) name: &'a str,
    length: usize,
}

/// Nothing for bytes that are no sealed value.
pub(super) fn head(sealed: &[u8]) -> Option<Head<'_>> {
    let [version, cipher, name_length, rest @ ..] = sealed else {
        return None;
    };
    let name = rest.get(..usize::from(*name_length))?;
    (*version == VERSION).then_some(Head {
        cipher: Cipher::of(*cipher)?,
        name: std::str::from_utf8(name).ok()?,
        length: 3 + name.len(),
    })
}

impl Key {
    pub(super) fn is_of(&self, head: &Head<'_>) -> bool {
        self.cipher == head.cipher && self.name == head.name
    }

    /// A key for one value.
    fn derive(&self, salt: &[u8]) -> LessSafeKey {
        let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(&self.secret);
        let derived = pseudorandom
            .expand(INFO, self.cipher.algorithm())
            .expect("a cipher's key is short enough to expand to");
        LessSafeKey::new(UnboundKey::from(derived))
    }

    /// Nothing when the system has no random numbers.
    pub(super) fn seal(&self, partition: &str, key: &str, plain: &[u8]) -> Option<Vec<u8>> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).ok()?;
        let name_length = u8::try_from(self.name.len()).ok()?;
        let length = 3 + self.name.len() + SALT_BYTES + plain.len() + TAG_BYTES;
        let mut sealed = Vec::with_capacity(length);
        sealed.extend_from_slice(&[VERSION, self.cipher.number(), name_length]);
        sealed.extend_from_slice(self.name.as_bytes());
        sealed.extend_from_slice(&salt);
        let bound = bound(&sealed, partition, key);
        let begin = sealed.len();
        sealed.extend_from_slice(plain);
        let tag = self
            .derive(&salt)
            .seal_in_place_separate_tag(nonce(), Aad::from(bound), &mut sealed[begin..])
            .ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }

    /// Nothing when the key is another one, or anything was changed.
    pub(super) fn open(&self, partition: &str, key: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let head = head(sealed)?;
        let (before, ciphertext) = sealed.split_at_checked(head.length + SALT_BYTES)?;
        let salt = &before[head.length..];
        let mut plain = ciphertext.to_vec();
        let length = self
            .derive(salt)
            .open_in_place(
                nonce(),
                Aad::from(bound(before, partition, key)),
                &mut plain,
            )
            .ok()?
            .len();
        plain.truncate(length);
        Some(plain)
    }
}

/// The key is used once, so that the nonce need not differ.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Neither partitions nor keys hold a zero.
fn bound(head: &[u8], partition: &str, key: &str) -> Vec<u8> {
    [head, b"\0", partition.as_bytes(), b"\0", key.as_bytes()].concat()
}

#[cfg(test)]
mod tests;
