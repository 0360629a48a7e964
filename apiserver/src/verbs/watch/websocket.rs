//! A watch as messages of a WebSocket, an event each: text for JSON, binary for protobuf.

use super::Stream;
use crate::authenticate::bearer;
use crate::respond::{JSON, full};
use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::status::Status;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::pin::pin;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// A client has nothing to say to a watch but that it goes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A handshake that was checked and not answered yet.
pub(super) struct Upgrade {
    accept: String,
    protocol: Option<HeaderValue>,
    connection: OnUpgrade,
}

impl Upgrade {
    /// `None` when the request asks for no WebSocket.
    pub(super) fn asked(request: &Parts) -> Result<Option<Self>, Status> {
        let asked = request.headers.get(UPGRADE);
        if !asked.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket")) {
            return Ok(None);
        }
        let key = request
            .headers
            .get(SEC_WEBSOCKET_KEY)
            .ok_or_else(|| Status::bad_request("the header Sec-WebSocket-Key is missing"))?;
        let connection = request.extensions.get::<OnUpgrade>().cloned();
        let connection = connection.ok_or_else(|| {
            Status::bad_request("this connection cannot be upgraded: HTTP/1.1 is needed")
        })?;
        Ok(Some(Self {
            accept: derive_accept_key(key.as_bytes()),
            protocol: protocol(request),
            connection,
        }))
    }

    pub(super) fn serve(self, stream: Stream, content_type: HeaderValue) -> Response<Body> {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let accept = HeaderValue::from_str(&self.accept).expect("base64 is good in a header");
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = self.protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        let is_text = content_type == JSON;
        headers.insert(CONTENT_TYPE, content_type);
        tokio::spawn(run(self.connection, stream, is_text));
        response
    }
}

/// The first offered protocol, whatever it is, without the one that carries a token.
fn protocol(request: &Parts) -> Option<HeaderValue> {
    let offered = request.headers.get_all(SEC_WEBSOCKET_PROTOCOL);
    let mut offered = offered
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|one| !one.is_empty() && !one.starts_with(bearer::PROTOCOL_PREFIX));
    HeaderValue::from_str(offered.next()?).ok()
}

/// Ends with the watch, or when the client goes.
async fn run(connection: OnUpgrade, mut stream: Stream, is_text: bool) {
    let Ok(connection) = connection.await else {
        return;
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let connection = TokioIo::new(connection);
    let mut socket: Socket =
        WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    loop {
        let frames = {
            let mut frames = pin!(stream.next());
            loop {
                tokio::select! {
                    frames = &mut frames => break frames,
                    message = socket.next() => match message {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        // Whatever else it says is of no interest, and disturbs nothing.
                        Some(Ok(_)) => {}
                    },
                }
            }
        };
        let Some(frames) = frames else {
            // The client may be gone already, which ends it as well.
            drop(socket.close(None).await);
            return;
        };
        for frame in frames.apart() {
            if socket.feed(message(frame, is_text)).await.is_err() {
                return;
            }
        }
        if socket.flush().await.is_err() {
            return;
        }
    }
}

fn message(frame: Bytes, is_text: bool) -> Message {
    if is_text {
        let text = String::from_utf8_lossy(&frame).into_owned();
        Message::Text(Utf8Bytes::from(text))
    } else {
        Message::Binary(frame)
    }
}
