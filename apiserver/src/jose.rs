//! JSON Web Tokens in their compact form: three parts, a signature over the first two (RFC 7515).
//!
//! Knows signatures, not what a token means. An algorithm counts only together with a key of its
//! kind, so that neither `none` nor a public key used as a shared secret can pass. `ES512` is not
//! among them: ring has no P-521.

pub mod public_key; // Keys that check signatures.
pub mod signing_key; // Keys that make them.

pub use public_key::PublicKey;
pub use signing_key::SigningKey;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The asymmetric algorithms of RFC 7518 that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Es256,
    Es384,
    Ps256,
    Ps384,
    Ps512,
    Rs256,
    Rs384,
    Rs512,
}

impl Algorithm {
    pub const ALL: [Self; 8] = [
        Self::Es256,
        Self::Es384,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Why a token's signature does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the token is malformed")]
    Malformed,
    #[error("invalid signature, no keys found")]
    UnknownKey,
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Wrong,
}

/// A token taken apart; nothing of it is believed yet.
#[derive(Debug)]
pub struct Unverified<'a> {
    /// What the header names, known here or not.
    pub algorithm: String,
    /// Empty when the header names none.
    pub key_id: String,
    pub claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    pub fn parse(token: &'a str) -> Result<Self, SignatureError> {
        let parts = || {
            let (signed, signature) = token.rsplit_once('.')?;
            let (header, claims) = signed.split_once('.')?;
            let header = decode(header)?;
            let text = |name: &str| header[name].as_str().unwrap_or("").to_owned();
            Some(Self {
                algorithm: text("alg"),
                key_id: text("kid"),
                claims: decode(claims)?,
                signed,
                signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            })
        };
        parts().ok_or(SignatureError::Malformed)
    }

    /// The claims, when one of `keys` signed them.
    pub fn verify<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k PublicKey>,
    ) -> Result<&Value, SignatureError> {
        let mut keys = keys.into_iter().filter(|key| self.is_by(key)).peekable();
        if keys.peek().is_none() {
            return Err(SignatureError::UnknownKey);
        }
        let algorithm = Algorithm::named(&self.algorithm).ok_or(SignatureError::Wrong)?;
        let is_good = keys.any(|key| key.verify(algorithm, self.signed, &self.signature));
        if is_good {
            Ok(&self.claims)
        } else {
            Err(SignatureError::Wrong)
        }
    }

    fn is_by(&self, key: &PublicKey) -> bool {
        self.key_id.is_empty() || self.key_id == key.id()
    }
}

/// The issuer that a token names, before anything of it is checked.
pub fn issuer(token: &str) -> Option<String> {
    let parts: Vec<&str> = token.split('.').collect();
    let [_, claims, _] = parts.as_slice() else {
        return None;
    };
    decode(claims)?["iss"].as_str().map(str::to_owned)
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests;
