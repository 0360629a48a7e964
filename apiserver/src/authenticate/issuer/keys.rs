//! The keys that an issuer publishes: found by its discovery document, fetched when a token asks
//! for one that is not known, and kept.
//!
//! Invariants: one fetch at a time, whoever waits for it; no two within `FETCH_PAUSE_SECONDS`, so
//! that tokens with invented keys cannot send this server to the issuer again and again. Keys that
//! are old are fetched anew, beside requests, so that one that the issuer took back ends; without an
//! answer the old ones count.

use crate::authenticate::configuration::Issuer;
use crate::fetch::{self, TrustError};
use crate::jose::PublicKey;
use coracle_api::json;
use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::ClientConfig;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

const WELL_KNOWN: &str = "/.well-known/openid-configuration";
const FETCH_PAUSE_SECONDS: i64 = 10;
const OLD_SECONDS: i64 = 3600;
/// Issuers publish a handful.
const KEYS_MAX: usize = 100;

pub struct KeySet {
    tls: Arc<ClientConfig>,
    issuer: String,
    discovery_url: String,
    /// Where the keys are, once it is known.
    url: OnceLock<String>,
    keys: RwLock<Arc<[PublicKey]>>,
    /// When the last fetch was; held while one is under way.
    fetching: Mutex<Option<i64>>,
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySet")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl KeySet {
    pub fn new(issuer: &Issuer) -> Result<Self, TrustError> {
        let authority = issuer.certificate_authority.as_str();
        let authority = (!authority.is_empty()).then_some(authority);
        let discovery_url = match issuer.discovery_url.as_str() {
            "" => format!("{}{WELL_KNOWN}", issuer.url.trim_end_matches('/')),
            elsewhere => elsewhere.to_owned(),
        };
        Ok(Self {
            tls: fetch::trusting(authority)?,
            issuer: issuer.url.clone(),
            discovery_url,
            url: OnceLock::new(),
            keys: RwLock::new(Arc::new([])),
            fetching: Mutex::new(None),
        })
    }

    /// Finds out where the keys are, unless it is known.
    pub async fn discover(&self) -> Result<(), String> {
        if self.url.get().is_some() {
            return Ok(());
        }
        let document = self.document(&self.discovery_url).await?;
        let named = json::text(&document, "issuer");
        if named != self.issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {:?} got \
                 {named:?}",
                self.issuer
            ));
        }
        match json::text(&document, "jwks_uri") {
            "" => Err("provider did not return JWKS URL".to_owned()),
            url => {
                // Somebody else may have been faster, with the same answer.
                drop(self.url.set(url.to_owned()));
                Ok(())
            }
        }
    }

    /// Whether it is known where the keys are.
    pub fn is_found(&self) -> bool {
        self.url.get().is_some()
    }

    pub fn cached(&self) -> Arc<[PublicKey]> {
        Arc::clone(&self.keys.read())
    }

    /// Looks after keys that are old. Whoever comes while somebody else does goes on.
    pub async fn refresh(&self, now: Timestamp) {
        let Ok(mut last) = self.fetching.try_lock() else {
            return;
        };
        if last.is_some_and(|last| within(last, now, OLD_SECONDS)) || self.keys.read().is_empty() {
            return;
        }
        if let Err(error) = self.fetch(&mut last, now).await {
            tracing::warn!(
                issuer = self.issuer,
                error,
                "keys of an issuer were not refreshed"
            );
        }
    }

    /// The keys as they are published now, or were a moment ago.
    pub async fn fetched(&self, now: Timestamp) -> Result<Arc<[PublicKey]>, String> {
        let mut last = self.fetching.lock().await;
        if !last.is_some_and(|last| within(last, now, FETCH_PAUSE_SECONDS)) {
            let fetched = self.fetch(&mut last, now).await;
            fetched.map_err(|why| {
                format!("failed to verify signature: fetching keys oidc: get keys failed {why}")
            })?;
        }
        Ok(self.cached())
    }

    async fn fetch(&self, last: &mut Option<i64>, now: Timestamp) -> Result<(), String> {
        let url = self
            .url
            .get()
            .ok_or("oidc: authenticator not initialized")?;
        *last = Some(now.as_second());
        let document = self.document(url).await?;
        let keys = json::list(&document, "keys").iter().take(KEYS_MAX);
        *self.keys.write() = keys.filter_map(PublicKey::from_jwk).collect();
        Ok(())
    }

    async fn document(&self, url: &str) -> Result<Value, String> {
        let fetched = fetch::get(&self.tls, url).await;
        let body = fetched.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body).map_err(|error| format!("Get {url:?}: {error}"))
    }
}

/// False too when the clock was set back in between.
fn within(last: i64, now: Timestamp, seconds: i64) -> bool {
    (0..seconds).contains(&now.as_second().saturating_sub(last))
}
