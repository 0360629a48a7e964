//! Bootstrap tokens: `id.secret`, kept as Secrets in kube-system that expire by themselves.
//!
//! Source of the rules: upstream's bootstrap token authenticator. Secrets are compared in a time
//! that does not tell how much of a guess was right.

use super::same_secret;
use super::user::{BOOTSTRAP_PREFIX, BOOTSTRAPPERS, User};
use crate::view::View;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::object::Object;
use coracle_api::timestamp;
use jiff::Timestamp;
use std::collections::BTreeSet;

pub const NAMESPACE: &str = "kube-system";
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
pub const NAME_PREFIX: &str = "bootstrap-token-";

const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 16;
/// Bytes of an extra group after its prefix, as upstream's pattern has it.
const GROUP_BYTES_MAX: usize = 256;

/// Id and secret of a well-formed token.
pub fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let good = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (good(id, ID_BYTES) && good(secret, SECRET_BYTES)).then_some((id, secret))
}

/// The user that a token names, `None` when it names nobody now.
pub fn user(view: &dyn View, token: &str, now: Timestamp) -> Option<User> {
    let (id, secret) = parse(token)?;
    let kept = view.get("", "secrets", NAMESPACE, &format!("{NAME_PREFIX}{id}"))?;
    let matches = !kept.is_deleting()
        && kept.str(&["type"]) == SECRET_TYPE
        && same_secret(data(&kept, "token-secret").as_bytes(), secret.as_bytes())
        && data(&kept, "token-id") == id
        && !has_expired(&kept, now)
        && data(&kept, "usage-bootstrap-authentication") == "true";
    if !matches {
        return None;
    }
    Some(User {
        name: format!("{BOOTSTRAP_PREFIX}{id}"),
        groups: groups(&data(&kept, "auth-extra-groups"))?,
        ..User::default()
    })
}

/// A value of the Secret's `data`; absent and undecodable ones read as empty.
pub fn data(secret: &Object, key: &str) -> String {
    STANDARD
        .decode(secret.str(&["data", key]))
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// An expiration that cannot be read counts as past.
fn has_expired(secret: &Object, now: Timestamp) -> bool {
    match data(secret, "expiration").as_str() {
        "" => false,
        text => timestamp::parse(text).is_none_or(|ends| ends <= now),
    }
}

fn groups(extra: &str) -> Option<Vec<String>> {
    let mut groups = BTreeSet::from([BOOTSTRAPPERS.to_owned()]);
    for group in extra.split(',').filter(|group| !group.is_empty()) {
        let own = group.strip_prefix("system:bootstrappers:")?;
        let good = own.len() <= GROUP_BYTES_MAX
            && own.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b':' | b'-')
            })
            && own
                .bytes()
                .last()
                .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        good.then(|| groups.insert(group.to_owned()))?;
    }
    Some(groups.into_iter().collect())
}
