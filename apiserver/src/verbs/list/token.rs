//! What `continue` carries: the revision of all pages, and where the next one begins. In the form
//! of upstream's, though no client may look into one.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use coracle_api::status::Status;
use coracle_store::Revision;
use serde::{Deserialize, Serialize};

const FORM: &str = "meta.k8s.io/v1";
/// In place of a revision: the newest state.
const NEWEST: i64 = -1;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Wire {
    v: String,
    rv: i64,
    start: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    /// `None` for the newest.
    pub revision: Option<Revision>,
    /// The last key that was shown, within the collection.
    pub after: String,
}

impl Token {
    pub fn encode(revision: Option<Revision>, after: &str) -> String {
        let wire = Wire {
            v: FORM.to_owned(),
            rv: revision.map_or(NEWEST, |at| i64::try_from(at.0).unwrap_or(i64::MAX)),
            // The least key after it.
            start: format!("{after}\0"),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    pub fn decode(text: &str) -> Result<Self, Status> {
        let bad = |why: String| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| bad(base64_text(&error)))?;
        let wire: Wire = serde_json::from_slice(&bytes)
            .map_err(|error| bad(coracle_api::decode::syntax_text(&error, &bytes)))?;
        if wire.v != FORM {
            let why = format!("server does not recognize this encoded version {}", wire.v);
            return Err(bad(why));
        }
        if wire.rv == 0 {
            let why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(bad(why.to_owned()));
        }
        if wire.start.is_empty() {
            let why = "encoded start key empty (version meta.k8s.io/v1)";
            return Err(bad(why.to_owned()));
        }
        let key = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad(wire.start));
        }
        Ok(Self {
            revision: u64::try_from(wire.rv).ok().map(Revision),
            after: key.strip_suffix('\0').unwrap_or(key).to_owned(),
        })
    }
}

fn base64_text(error: &DecodeError) -> String {
    let place = match error {
        DecodeError::InvalidByte(place, _) | DecodeError::InvalidLastSymbol(place, _) => *place,
        // Go names the first of the characters that are too few.
        DecodeError::InvalidLength(length) => length / 4 * 4,
        DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_went() {
        for revision in [Some(Revision(7)), None] {
            let text = Token::encode(revision, "default/a");
            let after = "default/a".to_owned();
            assert_eq!(Token::decode(&text).unwrap(), Token { revision, after });
        }
    }

    #[test]
    fn what_is_no_token_is_told_so() {
        let of = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let cases = [
            (
                "abc".to_owned(),
                "invalid character 'i' looking for beginning of value",
            ),
            ("!".to_owned(), "illegal base64 data at input byte 0"),
            (
                of(r#"{"v":"x","rv":1,"start":"a"}"#),
                "does not recognize this encoded version x",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1","start":"a"}"#),
                "incorrect encoded start",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1","rv":1}"#),
                "encoded start key empty",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#),
                "not valid: ../a",
            ),
        ];
        for (text, wanted) in cases {
            let message = Token::decode(&text).unwrap_err().message;
            assert!(message.contains(wanted), "{message}");
        }
    }
}
