//! Turns a request into a raw two-way stream by HTTP/1.1 Upgrade: the agent's tunnel.
//!
//! After the server's 101 the bytes belong to the new protocol; the agent then serves HTTP/2 on
//! the connection that it dialled.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;

use crate::connect::{self, DialError, Endpoint};

/// Of an answer that refuses, this much is read to say why.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// The upgraded connection; reads and writes the new protocol's bytes.
pub type Tunnel = TokioIo<hyper::upgrade::Upgraded>;

#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the connection broke off")]
    Http(#[from] hyper::Error),
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
    #[error("the server answered {status}: {message}")]
    Refused { status: StatusCode, message: String },
    #[error("the server did not answer in time")]
    Timeout,
}

/// Opens a connection of its own and asks for `protocol` on `path`.
pub async fn open(endpoint: &Endpoint, path: &str, protocol: &str) -> Result<Tunnel, UpgradeError> {
    let stream = connect::dial(endpoint, &[b"http/1.1"]).await?;
    let waited = endpoint.timeouts().response;
    tokio::time::timeout(waited, ask(stream, endpoint, path, protocol))
        .await
        .unwrap_or(Err(UpgradeError::Timeout))
}

async fn ask(
    stream: connect::Stream,
    endpoint: &Endpoint,
    path: &str,
    protocol: &str,
) -> Result<Tunnel, UpgradeError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Hands the stream over at the 101 and ends; its errors reach us through the response.
    tokio::spawn(connection.with_upgrades());
    let authority = endpoint
        .url()
        .authority()
        .map_or("", |authority| authority.as_str());
    let mut request = Request::get(path)
        .header(HOST, authority)
        .header(USER_AGENT, connect::USER_AGENT)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, protocol);
    if let Some(authorization) = endpoint.identity().authorization() {
        request = request.header(AUTHORIZATION, authorization);
    }
    let response = sender
        .send_request(request.body(Empty::<Bytes>::new())?)
        .await?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX)
            .collect()
            .await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        return Err(UpgradeError::Refused {
            status,
            message: refusal(&body),
        });
    }
    let upgraded = hyper::upgrade::on(response).await?;
    Ok(TokioIo::new(upgraded))
}

/// The message of a `Status`, or the text as it is.
fn refusal(body: &[u8]) -> String {
    let status: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = status
        .as_ref()
        .and_then(|status| status.get("message")?.as_str());
    match message {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    }
}
