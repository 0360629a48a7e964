//! The stream between API server and agent: frames do not depend on how their bytes arrive, and
//! what was decoded is written as the bytes that it came from.
#![no_main]

use bytes::BytesMut;
use coracle_api::frames::{Decoder, Encoder, Frame, PAYLOAD_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fn take_all(buffer: &mut BytesMut, frames: &mut Vec<Frame>) -> Result<(), String> {
    loop {
        match Decoder.decode(buffer) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut at_once = BytesMut::from(data);
    let mut frames = Vec::new();
    let ended = take_all(&mut at_once, &mut frames);
    let (mut buffer, mut pieces) = (BytesMut::new(), Vec::new());
    let mut arrived = Ok(());
    for piece in data.chunks(3) {
        buffer.extend_from_slice(piece);
        arrived = take_all(&mut buffer, &mut pieces);
        if arrived.is_err() {
            break;
        }
    }
    assert_eq!((&frames, &ended), (&pieces, &arrived));
    let mut written = BytesMut::new();
    for frame in &frames {
        assert!(frame.payload.len() <= PAYLOAD_BYTES_MAX);
        Encoder.encode(frame.channel, &frame.payload, &mut written);
    }
    assert!(data.starts_with(&written));
    assert_eq!(written.len() + at_once.len(), data.len());
});
