//! What streams between a client and a container, as Kubernetes' clients speak it: WebSocket and
//! SPDY/3.1 on an HTTP/1.1 connection that a request upgrades.
//!
//! Served by the API server, which passes it on to a node, and by a node that an API server dials.
//! Knows neither of them: a command is something that takes frames and gives frames, a port is
//! something that can be dialled. Bounds every buffer; either end may stop at any time and the
//! other learns of it.

pub mod command; // Exec and attach.
pub mod ports; // Connections to ports of a pod.

pub mod serving; // The bounds of a connection.
pub mod spdy; // Streams in one connection, as older clients open them.
mod speech; // The subprotocols of exec and attach.
pub mod websocket; // The WebSocket handshake.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
