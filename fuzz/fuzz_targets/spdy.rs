//! SPDY/3.1, both ends: frames do not depend on how their bytes arrive, blocks of headers unpack
//! within their bounds, and a session takes whatever comes and ends with its client.
#![no_main]
#![allow(dead_code)]

#[path = "../../streams/src/spdy/frame.rs"]
mod frame;
#[path = "../../streams/src/spdy/headers.rs"]
mod headers;
#[path = "../../streams/src/spdy/session.rs"]
mod session;

use bytes::{BufMut, BytesMut};
use frame::Frame;
use headers::{Packer, Unpacker};
use libfuzzer_sys::fuzz_target;
use session::Session;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Paused time would pass by itself; a session that has not ended by then never will.
const SESSION_MAX: Duration = Duration::from_secs(4);

fn take_all(buffer: &mut BytesMut, frames: &mut Vec<Frame>) -> Result<(), String> {
    loop {
        match frame::decode(buffer) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Frames whose lengths are right: a kind, a stream and a payload each, parted by a byte.
fn frames_of(data: &[u8]) -> Vec<u8> {
    let mut packer = Packer::default();
    let mut out = Vec::new();
    for part in data
        .split(|byte| *byte == 0xfe)
        .filter(|part| part.len() > 1)
    {
        let (kind, id, payload) = (part[0], u32::from(part[1] % 8), &part[2..]);
        match kind % 8 {
            0 | 1 => out.extend_from_slice(&frame::data(id, payload, kind % 8 == 1)),
            2 => {
                let text = String::from_utf8_lossy(payload);
                let (name, value) = text.split_once('=').unwrap_or(("streamtype", &text));
                out.extend_from_slice(&frame::open(id, &packer.pack(&[(name, value)])));
            }
            3 => out.extend_from_slice(&frame::reset(id, 5)),
            4 => out.extend_from_slice(&frame::ping(id)),
            kind => {
                out.put_u32(0x8003_0000 | u32::from(kind));
                out.put_u32(payload.len() as u32);
                out.put_slice(payload);
            }
        }
    }
    out
}

async fn serve(bytes: &[u8]) {
    let (mut near, far) = tokio::io::duplex(1024);
    let mut session = Session::start(far);
    let (mut reads, mut writes) = tokio::io::split(&mut near);
    let sending = async {
        // The session may end before it has taken all.
        let _ = writes.write_all(bytes).await;
        let _ = writes.shutdown().await;
    };
    let hearing = async {
        let mut heard = Vec::new();
        let _ = reads.read_to_end(&mut heard).await;
    };
    let serving = async {
        while let Some(mut stream) = session.accept().await {
            tokio::spawn(async move {
                while let Some(bytes) = stream.reader.read().await {
                    if stream.writer.write(&bytes).await.is_err() {
                        return;
                    }
                }
                let _ = stream.writer.finish().await;
            });
        }
        drop(session);
    };
    tokio::join!(sending, hearing, serving);
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
    let mut unpacker = Unpacker::default();
    for block in data.split(|byte| *byte == 0xff) {
        if unpacker.unpack(block).is_err() {
            break;
        }
    }
    let bytes = match data.first() {
        Some(first) if first % 4 == 0 => data.to_vec(),
        _ => frames_of(data),
    };
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    executor.expect("it can be made").block_on(async {
        let ended = tokio::time::timeout(SESSION_MAX, serve(&bytes)).await;
        ended.expect("a session ends with its client");
    });
});
