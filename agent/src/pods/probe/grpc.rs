//! Asks `grpc.health.v1.Health/Check`: one call over HTTP/2 without TLS.
//!
//! The two messages of that protocol have one field each, so they are read and written here and
//! no library of gRPC is needed. The words of a failure are upstream's.

use super::ask::Answer;
use bytes::{BufMut, Bytes, BytesMut};
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// The answer is a few bytes; more is not an answer of this service.
const ANSWER_BYTES_MAX: usize = 4096;
/// One byte for compression, four of length: what is before each message.
const PREFIX_BYTES: usize = 5;
const CODE_DEADLINE_EXCEEDED: u32 = 4;
const CODE_UNIMPLEMENTED: u32 = 12;
/// The names of `HealthCheckResponse.ServingStatus`, by number.
const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

pub async fn check(address: SocketAddr, service: &str, bound: Duration) -> Answer {
    let mut is_connected = false;
    let asked = tokio::time::timeout(bound, call(address, service, bound, &mut is_connected)).await;
    match asked {
        Ok(Ok(1)) => Answer::Success,
        Ok(Ok(status)) => {
            let known = usize::try_from(status).ok().and_then(|n| STATUSES.get(n));
            let name = known.map_or_else(|| status.to_string(), |name| (*name).to_owned());
            Answer::Failure(format!("service unhealthy (responded with {name:?})"))
        }
        Ok(Err(message)) => Answer::Failure(message),
        Err(_) if is_connected => Answer::Failure(deadline(bound)),
        Err(_) => Answer::Failure(format!(
            "timeout: failed to connect service \"{address}\" within {}s: context deadline \
             exceeded",
            bound.as_secs()
        )),
    }
}

fn deadline(bound: Duration) -> String {
    format!(
        "timeout: health rpc did not complete within {}s",
        bound.as_secs()
    )
}

/// The number of the serving status.
async fn call(
    address: SocketAddr,
    service: &str,
    bound: Duration,
    is_connected: &mut bool,
) -> Result<u64, String> {
    let unreached =
        |error: &str| format!("error: failed to connect service at \"{address}\": {error}");
    let failed = |error: &str| format!("error: health rpc probe failed: {error}");
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| unreached(&error.to_string()))?;
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| unreached(&error.to_string()))?;
    *is_connected = true;
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(question(service)))
        .map_err(|error| failed(&error.to_string()))?;
    let answer = async {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| failed(&error.to_string()))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| failed(&error.to_string()))?;
        // An error without a message comes with its code among the headers.
        let trailers = body.trailers().cloned().unwrap_or_default();
        let told = |name: &str| {
            let value = trailers.get(name).or_else(|| parts.headers.get(name));
            value.and_then(|value| value.to_str().ok()).unwrap_or("")
        };
        match told("grpc-status").parse::<u32>() {
            Ok(0) => serving(&body.to_bytes()).ok_or_else(|| failed("malformed answer")),
            Ok(CODE_UNIMPLEMENTED) => Err(format!(
                "error: this server does not implement the grpc health protocol \
                 (grpc.health.v1.Health): {}",
                told("grpc-message")
            )),
            Ok(CODE_DEADLINE_EXCEEDED) => Err(deadline(bound)),
            Ok(code) => Err(failed(&format!(
                "rpc error: code = {code} desc = {}",
                told("grpc-message")
            ))),
            Err(_) => Err(failed("no grpc-status in the answer")),
        }
    };
    // The connection works only while it is polled, and ends with this call.
    tokio::select! {
        answer = answer => answer,
        ended = connection => Err(failed(&match ended {
            Ok(()) => "the connection ended".to_owned(),
            Err(error) => error.to_string(),
        })),
    }
}

/// `HealthCheckRequest { string service = 1; }` with its prefix.
fn question(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.put_u8(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
            length >>= 7;
        }
        message.put_u8(u8::try_from(length).unwrap_or(0));
        message.extend_from_slice(service.as_bytes());
    }
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message);
    framed.freeze()
}

/// Of `HealthCheckResponse { ServingStatus status = 1; }`, uncompressed; absent is 0.
fn serving(framed: &[u8]) -> Option<u64> {
    let (prefix, message) = framed.split_at_checked(PREFIX_BYTES)?;
    let is_plain = prefix[0] == 0;
    match message {
        [] if is_plain => Some(0),
        [0x08, status, ..] if is_plain && *status < 0x80 => Some(u64::from(*status)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
