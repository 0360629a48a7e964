//! OpenID Connect discovery, by which others check tokens of service accounts themselves.

use super::text;
use crate::respond::{self, Wishes};
use crate::tokens::{CONFIGURATION_PATH, KEYS_PATH, Tokens};
use crate::tunnel::Body;
use http::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{Response, StatusCode};

const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// `address` is the server's host and port.
pub fn answer(
    path: &str,
    tokens: &Tokens,
    address: &str,
    request: &Parts,
) -> Option<Response<Body>> {
    let (kind, document) = match path {
        CONFIGURATION_PATH => ("application/json", tokens.configuration(address)),
        KEYS_PATH => ("application/jwk-set+json", tokens.keys()),
        _ => return None,
    };
    if let Err(status) = respond::check_produced(&respond::accepted(request), &[kind]) {
        return Some(Wishes::of(request).failure(&status));
    }
    let mut response = text(StatusCode::OK, kind, document.to_string());
    let headers = response.headers_mut();
    headers.remove(X_CONTENT_TYPE_OPTIONS);
    headers.insert(CACHE_CONTROL, CACHE);
    Some(response)
}
