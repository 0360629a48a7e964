//! Bootstrap tokens for enrolling nodes, as the command line makes and reads them.
//!
//! A token is `id.secret` and lives as upstream's Secret in kube-system. What a user carries to a
//! node is the join token, `coracle1.<sha256 of the CA certificate>.<id>.<secret>`: it pins the
//! CA, so that enrolment trusts nobody on the way.

use crate::authenticate::bootstrap_token::{self, NAME_PREFIX, NAMESPACE, data};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::object::Object;
use coracle_api::timestamp;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;

pub use bootstrap_token::SECRET_TYPE;

/// Begins every join token; the digit is the version of the form.
pub const JOIN_PREFIX: &str = "coracle1";

const ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const GROUP: &str = "system:bootstrappers:coracle:default-node-token";

#[derive(Debug, thiserror::Error)]
#[error("the CA certificate cannot be read: {0}")]
pub struct UnreadableCa(String);

/// One row of `coracle token list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    pub id: String,
    /// RFC 3339, or `never`.
    pub expires: String,
    pub description: String,
}

/// A fresh `id.secret`.
pub fn generate() -> String {
    let mut random = rand::rng();
    let mut text = |length: usize| -> String {
        (0..length)
            .map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())]))
            .collect()
    };
    format!("{}.{}", text(ID_LENGTH), text(SECRET_LENGTH))
}

/// The Secret that keeps a token; a token without a life stays until it is deleted. Panics when
/// `token` is not of the form that `generate` gives.
pub fn secret(token: &str, description: &str, life: Option<Duration>, now: Timestamp) -> Object {
    let (id, secret) = bootstrap_token::parse(token).expect("a generated token");
    let mut data = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            data.insert(key.to_owned(), STANDARD.encode(value).into());
        }
    };
    put("token-id", id);
    put("token-secret", secret);
    put("usage-bootstrap-authentication", "true");
    put("auth-extra-groups", GROUP);
    put("description", description);
    if let Some(life) = life {
        let life = SignedDuration::try_from(life).unwrap_or(SignedDuration::MAX);
        let ends = now.saturating_add(life).unwrap_or(Timestamp::MAX);
        put("expiration", &timestamp::format_time(ends));
    }
    let mut object = Object::new("v1", "Secret");
    object.set(&["metadata", "name"], secret_name(id).into());
    object.set(&["metadata", "namespace"], NAMESPACE.into());
    object.set(&["type"], SECRET_TYPE.into());
    object.set(&["data"], Value::Object(data));
    object
}

/// The join token of a token: what `coracle token create` prints.
pub fn join(token: &str, ca_pem: &str) -> Result<String, UnreadableCa> {
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes())
        .map_err(|error| UnreadableCa(error.to_string()))?;
    let hash = hex::encode(digest(&SHA256, &ca));
    Ok(format!("{JOIN_PREFIX}.{hash}.{token}"))
}

/// The id in a join token, a token, or an id alone.
pub fn id_of(text: &str) -> Option<String> {
    let mut parts = text.split('.').rev();
    let (last, before) = (parts.next()?, parts.next());
    let id = match before {
        None => last,
        Some(id) if bootstrap_token::parse(&format!("{id}.{last}")).is_some() => id,
        Some(_) => return None,
    };
    let good = id.len() == ID_LENGTH && id.bytes().all(|byte| ALPHABET.contains(&byte));
    good.then(|| id.to_owned())
}

pub fn secret_name(id: &str) -> String {
    format!("{NAME_PREFIX}{id}")
}

impl TokenInfo {
    /// `None` for a Secret that is not a token. Takes any form of a Secret that serializes.
    pub fn from_secret(secret: &impl Serialize) -> Option<Self> {
        let secret = &Object::from_value(serde_json::to_value(secret).ok()?)?;
        let id = data(secret, "token-id");
        if secret.str(&["type"]) != SECRET_TYPE || id.is_empty() {
            return None;
        }
        let expires = match data(secret, "expiration") {
            text if text.is_empty() => "never".to_owned(),
            text => text,
        };
        Some(Self {
            id,
            expires,
            description: data(secret, "description"),
        })
    }
}

#[cfg(test)]
mod tests;
