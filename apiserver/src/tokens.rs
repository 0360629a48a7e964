//! Tokens of service accounts: signed for those who may ask, checked when they are shown.
//!
//! A token is good as long as its signature, its time and its audience are, and as long as the
//! account and the object that it is bound to are there. Nothing about a token is stored, except
//! for those of the older kind, which are kept in Secrets.

pub mod check; // Who a token speaks for.
pub mod claims; // What a token says. Pure.
mod keys; // The keys in files.
pub mod legacy; // Tokens that are kept in Secrets.
mod legacy_uses; // Labels the Secrets of such tokens with the day of their last use.

use crate::jose::{PublicKey, SigningKey};
use crate::pki::PkiError;
use claims::Claims;
use coracle_api::status::Status;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub use check::{Checked, Count, EXTRA_NODE_NAME, Remarks, TokenError};
pub use legacy_uses::LegacyUses;

/// Upstream's customary name for a cluster's own issuer; it is also the API server's audience.
pub const ISSUER_DEFAULT: &str = "https://kubernetes.default.svc.cluster.local";
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
pub const KEYS_PATH: &str = "/openid/v1/jwks";

/// What the operator says about tokens of service accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The first signs; tokens of all are taken. Never empty.
    pub issuers: Vec<String>,
    /// What the API server takes a token for; the issuers when there are none.
    pub audiences: Vec<String>,
    /// Keys whose tokens are taken too, such as those that signed before.
    pub key_files: Vec<PathBuf>,
    /// `sa.key` beside the CA, made at first start, when absent.
    pub signing_key_file: Option<PathBuf>,
    /// Where others find the keys; at this server when absent.
    pub jwks_uri: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            issuers: vec![ISSUER_DEFAULT.to_owned()],
            audiences: Vec::new(),
            key_files: Vec::new(),
            signing_key_file: None,
            jwks_uri: None,
        }
    }
}

#[derive(Debug)]
pub struct Tokens {
    key: SigningKey,
    /// All keys whose tokens are taken; that of `key` is the first.
    keys: Vec<PublicKey>,
    issuers: Vec<String>,
    audiences: Vec<String>,
    jwks_uri: Option<String>,
}

impl Tokens {
    /// Reads the keys, or makes the signing key under `directory`.
    pub fn open(directory: &Path, settings: &Settings) -> Result<Self, PkiError> {
        let key = match &settings.signing_key_file {
            Some(file) => keys::signing(file)?,
            None => keys::own(directory)?,
        };
        let mut all = vec![key.public().clone()];
        for file in &settings.key_files {
            for other in keys::public(file)? {
                if !all.contains(&other) {
                    all.push(other);
                }
            }
        }
        let audiences = match settings.audiences.as_slice() {
            [] => &settings.issuers,
            given => given,
        };
        Ok(Self {
            key,
            keys: all,
            issuers: settings.issuers.clone(),
            audiences: audiences.to_vec(),
            jwks_uri: settings.jwks_uri.clone(),
        })
    }

    /// What the API server itself takes a token for.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    pub fn issuers(&self) -> &[String] {
        &self.issuers
    }

    fn issuer(&self) -> &str {
        self.issuers.first().map_or(ISSUER_DEFAULT, String::as_str)
    }

    pub fn issue(&self, claims: &Claims) -> Result<String, Status> {
        self.sign(&claims.to_value(self.issuer()))
    }

    /// The token of an account that is kept in a Secret.
    pub fn issue_legacy(&self, claims: &legacy::Claims) -> Result<String, Status> {
        self.sign(&claims.to_value())
    }

    fn sign(&self, claims: &Value) -> Result<String, Status> {
        self.key
            .sign(claims)
            .map_err(|error| Status::internal(format!("failed to generate token: {error}")))
    }

    /// OpenID Connect discovery: what others need to check a token themselves.
    pub fn configuration(&self, address: &str) -> Value {
        let here = format!("https://{address}{KEYS_PATH}");
        let mut algorithms: Vec<&str> = Vec::new();
        for key in &self.keys {
            let name = key.algorithm().name();
            if !algorithms.contains(&name) {
                algorithms.push(name);
            }
        }
        // Upstream keeps them in a sorted set.
        algorithms.sort_unstable();
        json!({
            "issuer": self.issuer(),
            "jwks_uri": self.jwks_uri.as_ref().unwrap_or(&here),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }

    pub fn keys(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(PublicKey::to_jwk).collect();
        json!({ "keys": keys })
    }
}

#[cfg(test)]
mod tests;
