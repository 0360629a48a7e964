//! What a Secret says of a bootstrap token. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use std::time::Duration;

const NAME_PREFIX: &str = "bootstrap-token-";
const ID_BYTES: usize = 6;

/// How long a token is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    ForEver,
    Left(Duration),
    Over,
}

/// Id and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub id: &'a str,
    pub secret: &'a str,
}

/// An end that cannot be read is past.
pub fn life(secret: &Secret, now: Timestamp) -> Life {
    let ends = data(secret, "expiration");
    if ends.is_empty() {
        return Life::ForEver;
    }
    let ends: Option<Timestamp> = ends.parse().ok();
    let left = ends.and_then(|ends| Duration::try_from(ends.duration_since(now)).ok());
    match left {
        Some(left) if !left.is_zero() => Life::Left(left),
        _ => Life::Over,
    }
}

/// The token, if it may sign and is good now.
pub fn to_sign_with(secret: &Secret, now: Timestamp) -> Option<Token<'_>> {
    let name = secret.metadata.name.as_deref()?;
    let named = name.strip_prefix(NAME_PREFIX)?;
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let token = Token {
        id: data(secret, "token-id"),
        secret: data(secret, "token-secret"),
    };
    let is_good = named.len() == ID_BYTES
        && named.bytes().all(letter)
        && token.id == named
        && !token.secret.is_empty()
        && life(secret, now) != Life::Over
        && data(secret, "usage-bootstrap-signing") == "true";
    is_good.then_some(token)
}

fn data<'a>(secret: &'a Secret, key: &str) -> &'a str {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    let text = bytes.and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    text.unwrap_or("")
}
