//! One issuer of tokens outside the cluster (OpenID Connect): whether a token is its, and which
//! user its claims make.
//!
//! Source of the rules, and of the words: upstream's OIDC authenticator. Distributed claims are
//! not followed.

pub mod expression; // Expressions over claims and users.
mod keys; // The keys that the issuer publishes.
mod mapping; // From claims to a user. Pure.

use super::User;
use super::configuration::JwtAuthenticator;
use crate::fetch::TrustError;
use crate::jose::{Algorithm, Unverified};
use jiff::Timestamp;
use keys::KeySet;
use mapping::Mapping;
use serde_json::Value;

/// A token may come this much before its time: clocks differ.
const NOT_BEFORE_LEEWAY_SECONDS: i64 = 60;
/// The longest that there is has five.
const ALGORITHM_CHARS_MAX: usize = 32;
/// Google's tokens name it without the scheme.
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

#[derive(Debug)]
pub struct Issuer {
    settings: JwtAuthenticator,
    mapping: Mapping,
    keys: KeySet,
}

impl Issuer {
    /// Panics on settings that are not valid: they are checked before.
    pub fn new(settings: &JwtAuthenticator) -> Result<Self, TrustError> {
        Ok(Self {
            settings: settings.clone(),
            mapping: Mapping::new(settings),
            keys: KeySet::new(&settings.issuer)?,
        })
    }

    pub fn settings(&self) -> &JwtAuthenticator {
        &self.settings
    }

    pub fn url(&self) -> &str {
        &self.settings.issuer.url
    }

    fn audiences(&self) -> &[String] {
        &self.settings.issuer.audiences
    }

    /// Finds out where the issuer's keys are, unless it is known.
    pub async fn discover(&self) -> Result<(), String> {
        self.keys.discover().await
    }

    /// Looks after keys that are old.
    pub async fn refresh(&self, now: Timestamp) {
        self.keys.refresh(now).await;
    }

    /// Whether tokens that name this as their issuer are its own.
    pub fn is_named(&self, named: &str) -> bool {
        named == self.url() || (self.url() == GOOGLE.0 && named == GOOGLE.1)
    }

    /// The user behind a token that names this issuer; the error is for the log and for reviews.
    pub async fn user(&self, token: &str, now: Timestamp) -> Result<User, String> {
        let claims = self.verify(token, now).await;
        let claims = claims.map_err(|why| format!("oidc: verify token: {why}"))?;
        self.mapping.user(&claims)
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<Value, String> {
        if !self.keys.is_found() {
            return Err("oidc: authenticator not initialized".to_owned());
        }
        let token = Unverified::parse(token).map_err(|_| "oidc: malformed jwt".to_owned())?;
        if Algorithm::named(&token.algorithm).is_none() {
            let known = Algorithm::ALL.map(Algorithm::name).join("\" \"");
            // Nothing of it is believed yet, and this goes into the log.
            let algorithm = token.algorithm.chars().take(ALGORITHM_CHARS_MAX);
            let algorithm: String = algorithm.collect();
            return Err(format!(
                "oidc: id token signed with unsupported algorithm, expected [\"{known}\"] got \
                 {algorithm:?}"
            ));
        }
        if token.verify(self.keys.cached().iter()).is_err() {
            let keys = self.keys.fetched(now).await?;
            token.verify(keys.iter()).map_err(|_| {
                "failed to verify signature: failed to verify id token signature".to_owned()
            })?;
        }
        self.check(&token.claims, now)?;
        Ok(token.claims)
    }

    fn check(&self, claims: &Value, now: Timestamp) -> Result<(), String> {
        let named = claims["iss"].as_str().unwrap_or("");
        if !self.is_named(named) {
            return Err(format!(
                "oidc: id token issued by a different provider, expected {:?} got {named:?}",
                self.url()
            ));
        }
        let given = match &claims["aud"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !given
            .iter()
            .any(|one| self.audiences().iter().any(|own| own == one))
        {
            return Err(self.wrong_audience(&given));
        }
        // Whole seconds, or a number with a fraction, as RFC 7519 allows.
        let time = |name: &str| claims[name].as_f64().map(|at| at as i64);
        let ends = time("exp").unwrap_or(0);
        let now = now.as_second();
        if ends < now {
            return Err(format!(
                "oidc: token is expired (Token Expiry: {})",
                shown(ends)
            ));
        }
        match time("nbf") {
            Some(begins) if now + NOT_BEFORE_LEEWAY_SECONDS < begins => Err(format!(
                "oidc: current time {} before the nbf (not before) time: {}",
                shown(now),
                shown(begins)
            )),
            _ => Ok(()),
        }
    }

    fn wrong_audience(&self, given: &[&str]) -> String {
        let quoted = |all: &[&str]| {
            let all: Vec<String> = all.iter().map(|one| format!("{one:?}")).collect();
            format!("[{}]", all.join(" "))
        };
        match self.audiences() {
            [one] => format!("oidc: expected audience {one:?} got {}", quoted(given)),
            several => {
                let mut own: Vec<&str> = several.iter().map(String::as_str).collect();
                own.sort_unstable();
                format!(
                    "oidc: expected audience in {} got {}",
                    quoted(&own),
                    quoted(given)
                )
            }
        }
    }
}

/// A time as Go shows one.
fn shown(seconds: i64) -> String {
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN);
    at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

#[cfg(test)]
pub mod tests;
