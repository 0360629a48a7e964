//! What a webhook's status line and body mean, in the words of upstream's client.

use bytes::Bytes;
use coracle_api::json;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use serde_json::Value;

/// As upstream: what of a text is shown.
const SHOWN_BYTES_MAX: usize = 2048;
const JSON: &str = "application/json";

/// What counts of the beginning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub code: u16,
    pub content_type: String,
}

impl Head {
    pub fn of(parts: &Parts) -> Self {
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        Self {
            code: parts.status.as_u16(),
            content_type: content_type.unwrap_or("").to_owned(),
        }
    }

    fn is_text(&self) -> bool {
        self.content_type.is_empty() || self.content_type.starts_with("text/")
    }
}

/// The body of a success; else a message, with the code that it is counted under.
pub fn read(head: &Head, body: Bytes) -> Result<Bytes, (String, u16)> {
    let code = head.code;
    if !(200..=206).contains(&code) {
        let of_status = status(&body);
        return Err(of_status.unwrap_or_else(|| (unstructured(head, &body), code)));
    }
    if body.is_empty() {
        let shown = match head.content_type.as_str() {
            "" => JSON,
            given => given,
        };
        let why = format!("0-length response with status code: {code} and content type: {shown}");
        return Err((why, StatusCode::SERVICE_UNAVAILABLE.as_u16()));
    }
    match status(&body) {
        Some(failure) => Err(failure),
        None => Ok(body),
    }
}

/// A Status that says that it failed.
fn status(body: &[u8]) -> Option<(String, u16)> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let is_status =
        json::text(&value, "kind") == "Status" && json::text(&value, "apiVersion") == "v1";
    if !is_status || json::text(&value, "status") == "Success" {
        return None;
    }
    let code = json::int(&value, "code").and_then(|code| u16::try_from(code).ok());
    Some((json::text(&value, "message").to_owned(), code.unwrap_or(0)))
}

/// What upstream's client says of an answer that is no object.
fn unstructured(head: &Head, body: &[u8]) -> String {
    let shown = if head.is_text() {
        let cut = &body[..body.len().min(SHOWN_BYTES_MAX)];
        String::from_utf8_lossy(cut).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    let fixed = match head.code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        403 | 415 => return shown,
        406 if shown.is_empty() || shown == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return shown,
        500.. => {
            return format!(
                "an error on the server ({shown:?}) has prevented the request from succeeding"
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests;
