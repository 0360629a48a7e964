//! Bearer tokens as requests carry them: the Authorization header, or a WebSocket subprotocol
//! for browsers, which cannot set headers.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};

/// Prefix of the subprotocol that carries a token, base64url without padding.
pub use coracle_streams::websocket::TOKEN_PREFIX as PROTOCOL_PREFIX;

/// The token, when the request shows one. An empty one counts as none, as upstream has it.
pub fn token(headers: &HeaderMap) -> Option<String> {
    from_authorization(headers).or_else(|| from_protocols(headers))
}

fn from_authorization(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_start().split(' ').next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

fn from_protocols(headers: &HeaderMap) -> Option<String> {
    let encoded = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|protocol| protocol.trim().strip_prefix(PROTOCOL_PREFIX))?;
    let token = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    (!token.is_empty()).then_some(token)
}
