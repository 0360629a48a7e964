//! SPDY/3.1, as much of it as Kubernetes' clients speak: streams that the client opens inside of
//! one connection. kubectl up to 1.29 speaks it for exec and attach, and every kubectl for
//! port-forward, where newer ones carry it in a WebSocket.
//!
//! Source: the SPDY protocol, draft 3.1. No flow control beside that of the connection, as the
//! clients have none: a stream that is not read holds up the others of its connection.

pub mod frame; // Frames. Pure.
pub mod headers; // Blocks of headers, packed with a dictionary. Pure.
pub mod session; // Streams of one connection.

use crate::{Body, full};
use coracle_api::status::Status;
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;

/// Value of the Upgrade header.
pub const PROTOCOL: &str = "SPDY/3.1";
const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

/// A handshake that was checked and not answered yet.
#[derive(Debug)]
pub struct Upgrade {
    /// What is spoken on the streams; empty for a client that does not negotiate.
    pub protocol: &'static str,
    pub connection: OnUpgrade,
}

pub fn is_asked(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()))
}

/// What came of what the client offers.
#[derive(Debug)]
pub enum Negotiated {
    Agreed(Upgrade),
    /// The answer that names what could have been offered.
    Refused(Box<Response<Body>>),
}

/// Takes the first protocol that the client offers and we know.
pub fn negotiate(request: &mut Parts, supported: &[&'static str]) -> Result<Negotiated, Status> {
    let offered: Vec<&str> = request
        .headers
        .get_all(VERSION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let common = offered
        .iter()
        .find_map(|offer| supported.iter().find(|known| *known == offer));
    let protocol = match common {
        Some(protocol) => *protocol,
        None if offered.is_empty() => "",
        None => return Ok(Negotiated::Refused(Box::new(refused(&offered, supported)))),
    };
    let Some(connection) = request.extensions.remove::<OnUpgrade>() else {
        let why = "this connection cannot be upgraded: HTTP/1.1 is needed";
        return Err(Status::bad_request(why));
    };
    Ok(Negotiated::Agreed(Upgrade {
        protocol,
        connection,
    }))
}

fn refused(offered: &[&str], supported: &[&str]) -> Response<Body> {
    let text = format!(
        "unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server \
         accepts {supported:?}"
    );
    let mut response = Response::new(full(text));
    *response.status_mut() = StatusCode::FORBIDDEN;
    for protocol in supported {
        if let Ok(value) = HeaderValue::from_str(protocol) {
            response.headers_mut().append(ACCEPTED, value);
        }
    }
    response
}

impl Upgrade {
    pub fn response(&self) -> Response<Body> {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        if !self.protocol.is_empty() {
            headers.insert(VERSION, HeaderValue::from_static(self.protocol));
        }
        response
    }
}

#[cfg(test)]
mod tests;
