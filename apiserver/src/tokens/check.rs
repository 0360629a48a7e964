//! Who a token speaks for, as long as it is good.

use super::claims::{Claims, Reference};
use super::{Tokens, legacy};
use crate::authenticate::User;
use crate::authenticate::user::{SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS};
use crate::jose::{SignatureError, Unverified};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::{json, timestamp};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Clocks of a cluster differ by less, and what is deleted counts a moment longer.
const LEEWAY_SECONDS: i64 = 60;

const EXTRA_CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";
const EXTRA_POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const EXTRA_POD_UID: &str = "authentication.kubernetes.io/pod-uid";
pub const EXTRA_NODE_NAME: &str = "authentication.kubernetes.io/node-name";
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
    /// What an issuer outside the cluster has to say.
    #[error("{0}")]
    Issuer(String),
    #[error("{0} claim is missing")]
    Missing(&'static str),
    #[error("sub claim is invalid")]
    Subject,
    #[error("Token has been invalidated")]
    LegacyInvalidated,
    #[error("Token does not match server's copy")]
    NotTheCopy,
    #[error("ServiceAccount UID ({own}) does not match claim ({claimed})")]
    LegacyOtherAccount { own: String, claimed: String },
    #[error("ServiceAccount {0} has been deleted")]
    LegacyDeletedAccount(String),
    #[error(
        "the token in secret {secret} for service account {account} has been marked invalid. Use \
         tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
         'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow \
         use of this token"
    )]
    MarkedInvalid { secret: String, account: String },
}

/// A token that is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub user: User,
    /// Those of the wanted audiences that it is good for.
    pub audiences: Vec<String>,
}

/// What is to be said about a token that this cluster signed, be it good or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Annotations of the audit event.
    pub audit: Vec<(&'static str, String)>,
    /// For the one who uses it.
    pub warning: Option<&'static str>,
    /// It is of the older kind.
    pub is_legacy: bool,
    pub count: Option<Count>,
    /// It is kept in this Secret.
    pub used: Option<legacy::Used>,
}

/// As what the use of a token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// It tells its user when to read a new one, and that is still to come.
    Fresh,
    /// That time is past.
    Stale,
    /// In a Secret that its account names.
    Generated,
    /// In a Secret that somebody made.
    Manual,
    /// In a Secret that is marked, as nobody seemed to use it.
    Invalidated,
}

/// As Go shows a list of strings.
fn quoted(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}

impl Tokens {
    /// The user behind a token, and for which of the wanted audiences it is good.
    pub fn check(
        &self,
        view: &dyn View,
        token: &str,
        wanted: &[String],
        now: Timestamp,
        remarks: &mut Remarks,
    ) -> Result<Checked, TokenError> {
        // By the issuer that it names; nothing of it is believed yet.
        let parsed = Unverified::parse(token).map_err(|_| TokenError::OfAnother)?;
        let issuer = json::text(&parsed.claims, "iss");
        if issuer == legacy::ISSUER {
            return self.check_legacy(view, token, &parsed, wanted, remarks);
        }
        if !self.issuers.iter().any(|own| own == issuer) {
            return Err(TokenError::OfAnother);
        }
        let claims = Claims::read(parsed.verify(&self.keys)?);
        let audiences = self.good_for(&claims.audiences, wanted)?;
        check_time(&claims, now.as_second())?;
        check_objects(view, &claims, now)?;
        remark(&claims, now, remarks);
        Ok(Checked {
            user: user(&claims),
            audiences,
        })
    }

    fn check_legacy(
        &self,
        view: &dyn View,
        token: &str,
        parsed: &Unverified<'_>,
        wanted: &[String],
        remarks: &mut Remarks,
    ) -> Result<Checked, TokenError> {
        let claims = parsed.verify(&self.keys)?;
        legacy::remark(claims, remarks);
        // They name no audience: they are for the API server.
        let audiences = self.good_for(&[], wanted)?;
        let claims = legacy::Claims::read(claims)?;
        claims.check(view, token, remarks)?;
        Ok(Checked {
            user: account_user(&claims.namespace, &claims.account),
            audiences,
        })
    }

    fn good_for(&self, given: &[String], wanted: &[String]) -> Result<Vec<String>, TokenError> {
        let given = match given {
            [] => &self.audiences,
            given => given,
        };
        let good: Vec<String> = given
            .iter()
            .filter(|one| wanted.contains(one))
            .cloned()
            .collect();
        if good.is_empty() {
            return Err(TokenError::Audience {
                given: given.to_vec(),
                wanted: wanted.to_vec(),
            });
        }
        Ok(good)
    }
}

/// A token that lives longer than its user knows is told of once its own time is over.
fn remark(claims: &Claims, now: Timestamp, remarks: &mut Remarks) {
    let Some(after) = claims.warn_after else {
        return;
    };
    let over = now.as_second() - after;
    if over <= 0 {
        remarks.count = Some(Count::Fresh);
        return;
    }
    let told = format!(
        "subject: {}, seconds after warning threshold: {over}",
        claims.subject()
    );
    remarks
        .audit
        .push(("authentication.k8s.io/stale-token", told));
    remarks.count = Some(Count::Stale);
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
        extra,
        ..account_user(&claims.namespace, &claims.account)
    }
}

fn account_user(namespace: &str, account: &Reference) -> User {
    User {
        name: format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{}", account.name),
        uid: account.uid.clone(),
        groups: vec![
            SERVICE_ACCOUNTS.to_owned(),
            format!("{SERVICE_ACCOUNTS}:{namespace}"),
        ],
        ..User::default()
    }
}
