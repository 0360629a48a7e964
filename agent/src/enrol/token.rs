//! The enrolment token: `coracle1.<sha256 of the CA's certificate>.<id>.<secret>`.
//!
//! The hash lets the node know its server before it trusts it with the secret.

use std::fmt;

/// Names the format, so that a later one can be told apart.
const VERSION: &str = "coracle1";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// The secret does not show in `Debug`.
#[derive(Clone, Eq, PartialEq)]
pub struct Token {
    /// SHA-256 of the DER form of the certificate authority's certificate.
    pub ca_hash: [u8; 32],
    pub id: String,
    pub secret: String,
}

impl Token {
    /// What goes into the `Authorization` header.
    pub fn bearer(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// None when the text is no token; surrounding white space is allowed, as in a file.
pub fn parse_token(text: &str) -> Option<Token> {
    let mut parts = text.trim().split('.');
    let (version, hash, id, secret) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version != VERSION || parts.next().is_some() {
        return None;
    }
    let mut ca_hash = [0; 32];
    hex::decode_to_slice(hash, &mut ca_hash).ok()?;
    let is_word = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_token = is_word(id, ID_LENGTH) && is_word(secret, SECRET_LENGTH);
    is_token.then(|| Token {
        ca_hash,
        id: id.to_owned(),
        secret: secret.to_owned(),
    })
}

#[cfg(test)]
mod tests;
