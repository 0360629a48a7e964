//! Answers of gRPC services: messages do not depend on how their bytes arrive and hold no more
//! than they may; texts of errors are read whatever they are.
#![no_main]
#![allow(dead_code)]

#[path = "../../agent/src/grpc/frame.rs"]
mod frame;
#[path = "../../agent/src/grpc/status.rs"]
mod status;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use status::{Code, Status};

const MESSAGE_BYTES_MAX: usize = 1024;

fn take_all(buffer: &mut BytesMut, messages: &mut Vec<Bytes>) -> Result<(), Status> {
    while let Some(message) = frame::take(buffer, MESSAGE_BYTES_MAX)? {
        messages.push(message);
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let mut at_once = BytesMut::from(data);
    let mut messages = Vec::new();
    let ended = take_all(&mut at_once, &mut messages);
    let (mut buffer, mut pieces) = (BytesMut::new(), Vec::new());
    let mut arrived = Ok(());
    for piece in data.chunks(2) {
        buffer.extend_from_slice(piece);
        arrived = take_all(&mut buffer, &mut pieces);
        if arrived.is_err() {
            break;
        }
    }
    assert_eq!((&messages, &ended), (&pieces, &arrived));
    let mut bytes = 0;
    for message in &messages {
        assert!(message.len() <= MESSAGE_BYTES_MAX);
        bytes += frame::PREFIX_BYTES + message.len();
    }
    assert_eq!(bytes + at_once.len(), data.len());
    let text = status::decode_message(data);
    assert!(text.len() <= 3 * data.len());
    let plain = data.iter().all(|byte| byte.is_ascii() && *byte != b'%');
    assert!(!plain || text.as_bytes() == data);
});
