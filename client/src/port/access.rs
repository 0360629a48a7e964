//! Who asks, and whether they may: a certificate of the cluster's authority, or a token that the
//! API server knows; then what that server's authorizers say. Answers are kept for a while.

use crate::Client;
use crate::clock::{Clock, Instant};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Answers that are kept of each kind; few ask.
const KEPT_MAX: usize = 256;

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Sorted by key.
    pub extra: Vec<(String, Vec<String>)>,
}

impl Caller {
    /// The common name is the user, the organizations are the groups. The chain was verified. With
    /// the time until which it holds.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<(Self, Timestamp)> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let until = certificate.validity().not_after.timestamp();
        let until = Timestamp::from_second(until).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let organizations = subject.iter_organization();
        let groups = organizations.filter_map(|one| one.as_str().ok().map(str::to_owned));
        let mut groups: Vec<String> = groups.collect();
        groups.push("system:authenticated".to_owned());
        let caller = Self {
            name,
            groups,
            ..Self::default()
        };
        Some((caller, until))
    }
}

/// For how long answers are kept.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    pub token: Duration,
    pub allowed: Duration,
    pub refused: Duration,
}

/// What is asked for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Asked {
    /// A subresource of a Node; the verb is empty for a method that no role can name.
    Node {
        name: String,
        verb: &'static str,
        subresource: &'static str,
    },
    Path {
        verb: String,
        path: String,
    },
}

#[derive(Debug, thiserror::Error)]
#[error("the API server does not know the token")]
pub struct UnknownToken;

pub struct Access {
    client: Client,
    clock: Clock,
    fresh: Fresh,
    tokens: Kept<[u8; 32], Option<Caller>>,
    decisions: Kept<(Caller, Asked), bool>,
}

impl Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    pub fn new(client: Client, clock: Clock, fresh: Fresh) -> Self {
        Self {
            client,
            clock,
            fresh,
            tokens: Kept::default(),
            decisions: Kept::default(),
        }
    }

    /// By the token that the request carries; nobody without one.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Caller>, UnknownToken> {
        let Some(token) = token(headers) else {
            return Ok(None);
        };
        // Secrets are not kept.
        let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        let key: [u8; 32] = digest.as_ref().try_into().map_err(|_| UnknownToken)?;
        let now = self.clock.monotonic();
        if let Some(known) = self.tokens.get(&key, now) {
            return known.map(Some).ok_or(UnknownToken);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = match api.create(&PostParams::default(), &review).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(%error, "a token is not reviewed");
                return Err(UnknownToken);
            }
        };
        let caller = authenticated(answer);
        self.tokens
            .put(key, caller.clone(), now + self.fresh.token, now);
        caller.map(Some).ok_or(UnknownToken)
    }

    pub async fn allows(&self, caller: &Caller, asked: Asked) -> Result<bool, kube::Error> {
        let key = (caller.clone(), asked);
        let now = self.clock.monotonic();
        if let Some(known) = self.decisions.get(&key, now) {
            return Ok(known);
        }
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api
            .create(&PostParams::default(), &review(caller, &key.1))
            .await?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        let fresh = if is_allowed {
            self.fresh.allowed
        } else {
            self.fresh.refused
        };
        self.decisions.put(key, is_allowed, now + fresh, now);
        Ok(is_allowed)
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn review(caller: &Caller, asked: &Asked) -> SubjectAccessReview {
    let extra: BTreeMap<_, _> = caller.extra.iter().cloned().collect();
    let mut spec = SubjectAccessReviewSpec {
        user: Some(caller.name.clone()),
        uid: (!caller.uid.is_empty()).then(|| caller.uid.clone()),
        groups: Some(caller.groups.clone()),
        extra: (!extra.is_empty()).then_some(extra),
        ..SubjectAccessReviewSpec::default()
    };
    match asked {
        Asked::Node {
            name,
            verb,
            subresource,
        } => {
            spec.resource_attributes = Some(ResourceAttributes {
                verb: Some((*verb).to_owned()),
                version: Some("v1".to_owned()),
                resource: Some("nodes".to_owned()),
                subresource: Some((*subresource).to_owned()),
                name: Some(name.clone()),
                ..ResourceAttributes::default()
            });
        }
        Asked::Path { verb, path } => {
            spec.non_resource_attributes = Some(NonResourceAttributes {
                verb: Some(verb.clone()),
                path: Some(path.clone()),
            });
        }
    }
    SubjectAccessReview {
        spec,
        ..SubjectAccessReview::default()
    }
}

fn authenticated(review: TokenReview) -> Option<Caller> {
    let status = review
        .status
        .filter(|status| status.authenticated == Some(true))?;
    let user = status.user?;
    Some(Caller {
        name: user.username?,
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default().into_iter().collect(),
    })
}

/// Answers with an end; when there are too many, those that have ended go, and then all of them.
#[derive(Debug)]
struct Kept<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn get(&self, key: &K, now: Instant) -> Option<V> {
        let kept = self.0.lock();
        let (value, until) = kept.get(key)?;
        (now < *until).then(|| value.clone())
    }

    fn put(&self, key: K, value: V, until: Instant, now: Instant) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, (value, until));
    }
}

#[cfg(test)]
mod tests;
