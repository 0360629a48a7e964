//! The subprotocols of exec and attach: how channels are written into WebSocket messages. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, BytesMut};
use coracle_api::frames::{Channel, Frame};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// The first is for a client that names none.
pub const PROTOCOLS: &[&str] = &[
    "channel.k8s.io",
    V5,
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "base64.channel.k8s.io",
];
const V5: &str = "v5.channel.k8s.io";

/// How a subprotocol writes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speech {
    base64: bool,
    /// From v4 on, the error channel carries a Status; before, plain text and nothing on success.
    pub status: bool,
    /// From v5 on, a client can close one channel.
    pub close: bool,
}

impl Speech {
    pub fn of(protocol: &str) -> Self {
        Self {
            base64: protocol.contains("base64"),
            status: protocol.starts_with('v'),
            close: protocol == V5,
        }
    }

    pub fn message(self, channel: Channel, payload: &[u8]) -> Message {
        if self.base64 {
            let text = format!("{}{}", channel.number(), STANDARD.encode(payload));
            return Message::Text(Utf8Bytes::from(text));
        }
        let mut bytes = BytesMut::with_capacity(payload.len() + 1);
        bytes.extend_from_slice(&[channel.number()]);
        bytes.extend_from_slice(payload);
        Message::Binary(bytes.freeze())
    }

    /// What a message of the client says; `None` for what no channel takes.
    pub fn read(self, message: Message) -> Option<Frame> {
        let mut data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            _ => return None,
        };
        let first = *data.first()?;
        data.advance(1);
        let (number, payload) = if self.base64 {
            let number = char::from(first).to_digit(10)?;
            (
                u8::try_from(number).ok()?,
                STANDARD.decode(&data).ok()?.into(),
            )
        } else {
            (first, data)
        };
        let channel = Channel::from_number(number)?;
        Some(Frame { channel, payload })
    }
}
