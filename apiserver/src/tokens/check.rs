//! Who a token speaks for, as long as it is good.

use super::Tokens;
use super::claims::{Claims, Reference};
use crate::authenticate::User;
use crate::authenticate::user::SERVICE_ACCOUNTS;
use crate::pki::signing::{self, SignatureError};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::timestamp;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Clocks of a cluster differ by less, and what is deleted counts a moment longer.
const LEEWAY_SECONDS: i64 = 60;

const EXTRA_CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";
const EXTRA_POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const EXTRA_POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const EXTRA_NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const EXTRA_NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// Why a token is no good, in upstream's words, which reviews show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not one of ours: another authenticator may know it.
    #[error("the token is of another issuer")]
    OfAnother,
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted(given),
        quoted(wanted)
    )]
    Audience {
        given: Vec<String>,
        wanted: Vec<String>,
    },
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    FromTheFuture,
    #[error("serviceaccount {0:?} not found")]
    NoAccount(String),
    #[error("service account UID ({own}) does not match claim ({claimed})")]
    OtherAccount { own: String, claimed: String },
    #[error("service account {0} has been deleted")]
    DeletedAccount(String),
    #[error("{kind} UID ({own}) does not match service account {kind} ref claim ({claimed})")]
    OtherObject {
        kind: &'static str,
        own: String,
        claimed: String,
    },
    #[error("service account token has been invalidated")]
    Invalidated,
}

/// As Go shows a list of strings.
fn quoted(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}

impl Tokens {
    /// The user behind a token, and for which of the wanted audiences it is good.
    pub fn user(
        &self,
        view: &dyn View,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<(User, Vec<String>), TokenError> {
        if !self.is_ours(token) {
            return Err(TokenError::OfAnother);
        }
        let claims = Claims::read(&self.key.verify(token)?);
        let audiences: Vec<String> = claims
            .audiences
            .iter()
            .filter(|one| wanted.contains(one))
            .cloned()
            .collect();
        if audiences.is_empty() {
            return Err(TokenError::Audience {
                given: claims.audiences,
                wanted: wanted.to_vec(),
            });
        }
        check_time(&claims, now.as_second())?;
        check_objects(view, &claims, now)?;
        Ok((user(&claims), audiences))
    }

    /// By the issuer that it names; nothing of it is believed yet.
    fn is_ours(&self, token: &str) -> bool {
        let parts: Vec<&str> = token.split('.').collect();
        let [_, claims, _] = parts.as_slice() else {
            return false;
        };
        signing::decode(claims).is_some_and(|claims| claims["iss"] == self.issuer.as_str())
    }
}

fn check_time(claims: &Claims, now: i64) -> Result<(), TokenError> {
    if claims.not_before > now + LEEWAY_SECONDS {
        return Err(TokenError::NotYet);
    }
    if claims.expires_at < now - LEEWAY_SECONDS {
        return Err(TokenError::Expired);
    }
    if claims.issued_at > now + LEEWAY_SECONDS {
        return Err(TokenError::FromTheFuture);
    }
    Ok(())
}

/// The account and what the token is bound to, each with the uid that it had.
fn check_objects(view: &dyn View, claims: &Claims, now: Timestamp) -> Result<(), TokenError> {
    let (namespace, account) = (claims.namespace.as_str(), &claims.account);
    let found = view
        .get("", "serviceaccounts", namespace, &account.name)
        .ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    if found.uid() != account.uid {
        return Err(TokenError::OtherAccount {
            own: found.uid().to_owned(),
            claimed: account.uid.clone(),
        });
    }
    if is_gone(&found, now) {
        let name = format!("{namespace}/{}", account.name);
        return Err(TokenError::DeletedAccount(name));
    }
    let check = |kind, plural, namespace, reference: &Option<Reference>| {
        let Some(reference) = reference else {
            return Ok(());
        };
        let found = view
            .get("", plural, namespace, &reference.name)
            .ok_or(TokenError::Invalidated)?;
        if found.uid() != reference.uid {
            return Err(TokenError::OtherObject {
                kind,
                own: found.uid().to_owned(),
                claimed: reference.uid.clone(),
            });
        }
        match is_gone(&found, now) {
            true => Err(TokenError::Invalidated),
            false => Ok(()),
        }
    };
    check("secret", "secrets", namespace, &claims.secret)?;
    check("pod", "pods", namespace, &claims.pod)?;
    match claims.pod {
        // The node of a bound pod is told, and binds nothing.
        Some(_) => Ok(()),
        None => check("node", "nodes", "", &claims.node),
    }
}

/// Deleted for longer than the clocks may differ.
fn is_gone(object: &Object, now: Timestamp) -> bool {
    let deleted = timestamp::parse(object.str(&["metadata", "deletionTimestamp"]));
    deleted.is_some_and(|at| at.as_second() < now.as_second() - LEEWAY_SECONDS)
}

fn user(claims: &Claims) -> User {
    let mut extra = BTreeMap::new();
    let mut tell = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.id.is_empty() {
        tell(EXTRA_CREDENTIAL, &format!("JTI={}", claims.id));
    }
    if let Some(pod) = &claims.pod {
        tell(EXTRA_POD_NAME, &pod.name);
        tell(EXTRA_POD_UID, &pod.uid);
    }
    if let Some(node) = &claims.node {
        tell(EXTRA_NODE_NAME, &node.name);
        tell(EXTRA_NODE_UID, &node.uid);
    }
    User {
        name: claims.subject(),
        uid: claims.account.uid.clone(),
        groups: vec![
            SERVICE_ACCOUNTS.to_owned(),
            format!("{SERVICE_ACCOUNTS}:{}", claims.namespace),
        ],
        extra,
    }
}
