//! The key that signs tokens of service accounts: `sa.key`, ECDSA P-256, made at first start.
//!
//! Signs and checks JSON Web Tokens in their compact form (RFC 7515) with ES256 alone: a token that
//! names another algorithm, or none, is no good.

use super::PkiError;
use super::authority::{make_directory, read, write_private};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use std::path::Path;

pub const ALGORITHM: &str = "ES256";

const FILE: &str = "sa.key";
/// A coordinate of the curve; the point is a byte and two of these.
const COORDINATE_BYTES: usize = 32;

pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
    random: SystemRandom,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
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

impl SigningKey {
    /// Reads the key under `directory`, or makes it.
    pub fn open(directory: &Path) -> Result<Self, PkiError> {
        let path = directory.join(FILE);
        let unusable = |why: String| PkiError::Unusable {
            path: path.display().to_string(),
            what: "ECDSA P-256 key",
            why,
        };
        let key = match read(&path)? {
            Some(pem) => KeyPair::from_pem(&pem).map_err(|error| unusable(error.to_string()))?,
            None => {
                let key = KeyPair::generate()?;
                make_directory(directory)?;
                write_private(&path, &key.serialize_pem())?;
                key
            }
        };
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &key.serialize_der(), &random)
            .map_err(|error| unusable(error.to_string()))?;
        let hash = digest::digest(&digest::SHA256, &key.subject_public_key_info());
        Ok(Self {
            pair,
            id: URL_SAFE_NO_PAD.encode(hash),
            random,
        })
    }

    /// The token that says `claims`.
    pub fn sign(&self, claims: &Value) -> Result<String, ring::error::Unspecified> {
        let header = json!({ "alg": ALGORITHM, "kid": self.id });
        let [header, claims] = [&header, claims].map(|part| encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(&self.random, signed.as_bytes())?;
        Ok(format!("{signed}.{}", encode(signature)))
    }

    /// The claims of a token that this key signed.
    pub fn verify(&self, token: &str) -> Result<Value, SignatureError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(SignatureError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(SignatureError::Malformed)?;
        let header: Value = decode(header).ok_or(SignatureError::Malformed)?;
        match header["kid"].as_str() {
            Some(id) if !id.is_empty() && id != self.id => return Err(SignatureError::UnknownKey),
            _ => {}
        }
        if header["alg"] != ALGORITHM {
            return Err(SignatureError::Wrong);
        }
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| SignatureError::Malformed)?;
        let public = self.pair.public_key();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.as_ref())
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| SignatureError::Wrong)?;
        decode(claims).ok_or(SignatureError::Malformed)
    }

    /// The public key as a JSON Web Key (RFC 7517).
    pub fn public(&self) -> Value {
        let point = &self.pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(COORDINATE_BYTES);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": encode(x),
            "y": encode(y),
        })
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A part of a token; its signature is not looked at.
pub fn decode(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
