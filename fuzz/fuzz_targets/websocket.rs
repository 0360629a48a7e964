//! Messages of WebSocket clients, in each subprotocol of exec, attach and port-forward: what is
//! read is written as a message that reads the same.
#![no_main]
#![allow(dead_code)]

#[path = "../../streams/src/ports/speech.rs"]
mod ports;
#[path = "../../streams/src/speech.rs"]
mod speech;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use speech::Speech;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

const MARKED_CHANNEL_MAX: u8 = 0x7f - b'0';

fn check(message: &Message) {
    for protocol in speech::PROTOCOLS {
        let speech = Speech::of(protocol);
        if let Some(frame) = speech.read(message.clone()) {
            assert!(frame.payload.len() < message.len());
            let written = speech.message(frame.channel, &frame.payload);
            // The channel that closes others has no digit.
            if protocol.contains("base64") && frame.channel.number() > 9 {
                continue;
            }
            assert_eq!(speech.read(written), Some(frame), "{protocol}");
        }
    }
    for protocol in ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] {
        let speech = ports::Speech::of(protocol);
        if let Some((channel, payload)) = speech.read(message.clone()) {
            assert!(payload.len() < message.len());
            // A mark beyond ASCII stands in no text.
            if protocol.contains("base64") && channel > MARKED_CHANNEL_MAX {
                continue;
            }
            let written = speech.message(channel, &payload);
            assert_eq!(speech.read(written), Some((channel, payload)), "{protocol}");
        }
    }
}

fuzz_target!(|data: &[u8]| {
    check(&Message::Binary(Bytes::copy_from_slice(data)));
    if let Ok(text) = std::str::from_utf8(data) {
        check(&Message::Text(Utf8Bytes::from(text)));
    }
});
