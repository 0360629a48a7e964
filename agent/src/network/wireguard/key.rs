//! The keys of WireGuard: this node's pair, in a file that nobody else reads, and those of others.
//!
//! Keys are written as `wg` writes them: 32 bytes in base64.

use crate::atomic_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use defguard_boringtun::x25519;
use std::fmt;
use std::io;
use std::path::Path;

pub const BYTES: usize = 32;

/// Of the Node, whose agent writes it there.
pub const ANNOTATION: &str = "network.coracle/wireguard-public-key";

#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublicKey(pub [u8; BYTES]);

impl PublicKey {
    pub fn parse(text: &str) -> Option<Self> {
        bytes_of(text).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// This node's. Shown nowhere.
#[derive(Clone)]
pub struct KeyPair {
    pub secret: x25519::StaticSecret,
    pub public: PublicKey,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

impl KeyPair {
    pub fn new() -> Self {
        Self::of(rand::random())
    }

    fn of(bytes: [u8; BYTES]) -> Self {
        let secret = x25519::StaticSecret::from(bytes);
        let public = PublicKey(x25519::PublicKey::from(&secret).to_bytes());
        Self { secret, public }
    }

    /// The one in the file, or a new one that is there when this returns. A damaged file is as
    /// none: peers follow the new key.
    pub fn keep(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(content) => {
                if let Some(bytes) = std::str::from_utf8(&content).ok().and_then(bytes_of) {
                    return Ok(Self::of(bytes));
                }
                tracing::warn!(path = %path.display(), "there is no key in it: a new one is made");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let pair = Self::new();
        let text = STANDARD.encode(pair.secret.to_bytes()) + "\n";
        atomic_file::write(path, text.as_bytes(), 0o600)?;
        Ok(pair)
    }
}

fn bytes_of(text: &str) -> Option<[u8; BYTES]> {
    STANDARD.decode(text.trim()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
