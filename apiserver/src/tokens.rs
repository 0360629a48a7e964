//! Tokens of service accounts: signed for those who may ask, checked when they are shown.
//!
//! A token is good as long as its signature, its time and its audience are, and as long as the
//! account and the object that it is bound to are there. Nothing about a token is stored.

mod check; // Who a token speaks for.
pub mod claims; // What a token says. Pure.

use crate::pki::PkiError;
use crate::pki::signing::{ALGORITHM, SigningKey};
use claims::Claims;
use coracle_api::status::Status;
use serde_json::{Value, json};
use std::path::Path;

pub use check::TokenError;

/// Upstream's customary name for a cluster's own issuer; it is also the API server's audience.
pub const ISSUER_DEFAULT: &str = "https://kubernetes.default.svc.cluster.local";
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
pub const KEYS_PATH: &str = "/openid/v1/jwks";

#[derive(Debug)]
pub struct Tokens {
    key: SigningKey,
    issuer: String,
    audiences: Vec<String>,
}

impl Tokens {
    /// Reads the signing key under `directory`, or makes it.
    pub fn open(directory: &Path, issuer: &str) -> Result<Self, PkiError> {
        Ok(Self {
            key: SigningKey::open(directory)?,
            issuer: issuer.to_owned(),
            audiences: vec![issuer.to_owned()],
        })
    }

    /// What the API server itself takes a token for.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    pub fn issue(&self, claims: &Claims) -> Result<String, Status> {
        self.key
            .sign(&claims.to_value(&self.issuer))
            .map_err(|error| Status::internal(format!("failed to generate token: {error}")))
    }

    /// OpenID Connect discovery: what others need to check a token themselves.
    pub fn configuration(&self, address: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("https://{address}{KEYS_PATH}"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        })
    }

    pub fn keys(&self) -> Value {
        json!({ "keys": [self.key.public()] })
    }
}

#[cfg(test)]
mod tests;
