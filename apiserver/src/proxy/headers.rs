//! The headers of a proxied request and of its answer. Pure.

use super::path;
use super::rewrite::Rewriter;
use crate::api::PeerAddress;
use crate::authenticate::bearer;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const IMPERSONATE: &str = "impersonate-";

/// Between two neighbours only (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// Whom a browser may let read an answer is the API server's to say.
const CORS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// The words of all the headers of a name, in lower case.
fn words(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let words = texts.flat_map(|text| text.split(','));
    words.map(|word| word.trim().to_ascii_lowercase()).collect()
}

pub fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE) && words(headers, &CONNECTION).iter().any(|w| w == "upgrade")
}

/// To HTTP/2, on which the client would make requests of its own.
pub fn is_upgrade_to_requests(headers: &HeaderMap) -> bool {
    words(headers, &UPGRADE)
        .iter()
        .any(|word| word.starts_with("h2") || word.starts_with("http/"))
}

/// Turns the client's headers into those for the target.
pub fn prepare(request: &mut Parts, rewriter: &Rewriter, path: &str) {
    let wants_trailers = words(&request.headers, &TE).iter().any(|w| w == "trailers");
    strip_hop_by_hop(&mut request.headers);
    if wants_trailers {
        request
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
    }
    strip_credentials(&mut request.headers);
    append_forwarded_for(request);
    let whole = format!("{}/{}", rewriter.prefix, path::encode(path));
    if let Ok(value) = HeaderValue::from_str(&path::clean(&whole)) {
        request.headers.insert(FORWARDED_URI, value);
    }
    name_host(request);
}

/// The same for another API server, which has this server's paths.
pub fn prepare_passed_on(request: &mut Parts) {
    strip_hop_by_hop(&mut request.headers);
    strip_credentials(&mut request.headers);
    append_forwarded_for(request);
}

/// The same for a request to upgrade, whose hop-by-hop headers are what it is about.
pub fn prepare_upgrade(request: &mut Parts) {
    strip_credentials(&mut request.headers);
    append_forwarded_for(request);
    name_host(request);
}

/// HTTP/2 names the host in the URI, HTTP/1.1 in a header.
fn name_host(request: &mut Parts) {
    if request.headers.contains_key(HOST) {
        return;
    }
    let authority = request.uri.authority().map(|one| one.as_str());
    if let Some(Ok(value)) = authority.map(HeaderValue::from_str) {
        request.headers.insert(HOST, value);
    }
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    for word in words(headers, &CONNECTION) {
        headers.remove(word.as_str());
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// What proves who the caller is, to us and to nobody else.
fn strip_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    let acting: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(IMPERSONATE))
        .cloned()
        .collect();
    for name in acting {
        headers.remove(name);
    }
    let offered: Vec<String> = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|one| one.trim().to_owned())
        .collect();
    if offered
        .iter()
        .any(|one| one.starts_with(bearer::PROTOCOL_PREFIX))
    {
        headers.remove(SEC_WEBSOCKET_PROTOCOL);
        let kept: Vec<String> = offered
            .into_iter()
            .filter(|one| !one.starts_with(bearer::PROTOCOL_PREFIX))
            .collect();
        if !kept.is_empty()
            && let Ok(value) = HeaderValue::from_str(&kept.join(","))
        {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
        }
    }
}

fn append_forwarded_for(request: &mut Parts) {
    let Some(PeerAddress(address)) = request.extensions.get::<PeerAddress>() else {
        return;
    };
    let before = request.headers.get_all(&FORWARDED_FOR).iter();
    let mut all: Vec<String> = before
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    all.push(address.to_string());
    if let Ok(value) = HeaderValue::from_str(&all.join(", ")) {
        request.headers.insert(FORWARDED_FOR, value);
    }
}

pub fn strip_answer(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    for name in &CORS {
        headers.remove(name);
    }
}
