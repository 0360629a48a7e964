//! How channels of forwarded ports are written into WebSocket messages. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// How channels are written into messages.
#[derive(Clone, Copy, Debug)]
pub struct Speech {
    base64: bool,
}

impl Speech {
    pub fn of(protocol: &str) -> Self {
        Self {
            base64: protocol.contains("base64"),
        }
    }

    pub fn message(self, channel: u8, payload: &[u8]) -> Message {
        if self.base64 {
            let mark = char::from(b'0'.wrapping_add(channel));
            return Message::Text(Utf8Bytes::from(format!(
                "{mark}{}",
                STANDARD.encode(payload)
            )));
        }
        let mut bytes = Vec::with_capacity(payload.len() + 1);
        bytes.push(channel);
        bytes.extend_from_slice(payload);
        Message::binary(bytes)
    }

    pub fn read(self, message: Message) -> Option<(u8, Bytes)> {
        let mut data: Bytes = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            _ => return None,
        };
        let first = *data.first()?;
        data.advance(1);
        if self.base64 {
            let payload = STANDARD.decode(&data).ok()?;
            return Some((first.checked_sub(b'0')?, payload.into()));
        }
        Some((first, data))
    }
}
