//! The WebSocket handshake on a request that hyper serves.

use crate::{Body, full};
use bytes::Bytes;
use coracle_api::status::Status;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// Bounds what a client can make us hold for one message; kubectl sends 32 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Of a carried stream, in one message.
const CARRY_BYTES: usize = 32 * 1024;
/// A client that is silent for two pings and more is gone.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);
pub const SILENCE_MAX: Duration = Duration::from_secs(90);

/// For the client's own end after our last word: a connection that ends with something unread
/// throws away what the client has not read.
pub const FAREWELL_MAX: Duration = Duration::from_secs(5);

/// A subprotocol that begins like this is none, but carries a token.
pub const TOKEN_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// A handshake that was checked and not answered yet.
#[derive(Debug)]
pub struct Upgrade {
    protocol: &'static str,
    /// False when the client offered none: then the answer names none.
    named: bool,
    accept: String,
    connection: OnUpgrade,
}

/// The last message of a stream that ended as it should. A close without a code is an error to
/// client-go.
pub fn goodbye() -> Message {
    let frame = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    Message::Close(Some(frame))
}

pub fn is_asked(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

impl Upgrade {
    /// Takes the first offered protocol that is supported; the first supported when the client
    /// offers none.
    pub fn negotiate(request: &mut Parts, supported: &[&'static str]) -> Result<Self, Status> {
        if !is_asked(&request.headers) {
            return Err(Status::bad_request("Upgrade request required"));
        }
        let key = request
            .headers
            .get(SEC_WEBSOCKET_KEY)
            .ok_or_else(|| Status::bad_request("the header Sec-WebSocket-Key is missing"))?;
        let accept = derive_accept_key(key.as_bytes());
        let offered = offered(&request.headers);
        let protocol = if offered.is_empty() {
            supported.first()
        } else {
            offered
                .iter()
                .find_map(|offer| supported.iter().find(|known| *known == offer))
        };
        let Some(protocol) = protocol else {
            let why = format!(
                "none of the subprotocols {offered:?} is supported, choose one of {supported:?}"
            );
            return Err(Status::bad_request(why));
        };
        let connection = request.extensions.remove::<OnUpgrade>().ok_or_else(|| {
            Status::bad_request("this connection cannot be upgraded: HTTP/1.1 is needed")
        })?;
        Ok(Self {
            protocol,
            named: !offered.is_empty(),
            accept,
            connection,
        })
    }

    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    pub fn response(&self) -> Response<Body> {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let accept = self.accept.parse().expect("base64 is good in a header");
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if self.named {
            let protocol = HeaderValue::from_static(self.protocol);
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }

    /// Waits until the 101 is out.
    pub async fn open(self) -> hyper::Result<WebSocketStream<TokioIo<Upgraded>>> {
        let connection = TokioIo::new(self.connection.await?);
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        Ok(WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await)
    }
}

pub fn offers(headers: &HeaderMap, protocol: &str) -> bool {
    offered(headers).contains(&protocol)
}

/// Passes the bytes of a WebSocket's binary messages on as one stream, and back, until either
/// side ends.
pub async fn carry(socket: WebSocketStream<TokioIo<Upgraded>>, stream: DuplexStream) {
    let (mut sink, mut messages) = socket.split();
    let (mut reads, mut writes) = tokio::io::split(stream);
    let inwards = async {
        loop {
            match tokio::time::timeout(SILENCE_MAX, messages.next()).await {
                Ok(Some(Ok(Message::Binary(data)))) => {
                    if writes.write_all(&data).await.is_err() {
                        return;
                    }
                }
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => return,
                Ok(Some(Ok(_))) => {}
            }
        }
    };
    let outwards = async {
        let mut block = vec![0; CARRY_BYTES];
        let mut pings = tokio::time::interval(PING_INTERVAL);
        loop {
            let message = tokio::select! {
                _ = pings.tick() => Message::Ping(Bytes::new()),
                read = reads.read(&mut block) => match read {
                    Ok(count @ 1..) => Message::binary(Bytes::copy_from_slice(&block[..count])),
                    _ => break,
                },
            };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        // The client may be gone already; there is nobody left to tell.
        let _ = sink.send(goodbye()).await;
    };
    tokio::select! {
        () = inwards => {}
        () = outwards => {}
    }
}

/// Subprotocols in the client's order, without the one that carries a token.
fn offered(headers: &HeaderMap) -> Vec<&str> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !protocol.starts_with(TOKEN_PREFIX))
        .collect()
}
