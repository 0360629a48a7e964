//! Frames of SPDY/3.1: reading what clients send, writing what we answer. Pure.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Clients write 32 KiB at a time; more than this in one frame is no client of ours.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
const HEAD_BYTES: usize = 8;
const CONTROL: u32 = 0x8000_0000;
const VERSION: u32 = 3;
const FIN: u8 = 1;
/// The highest bit of an id is reserved.
const ID_MASK: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

/// Status of a reset.
pub const REFUSED_STREAM: u32 = 3;
pub const CANCEL: u32 = 5;

pub type StreamId = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The client opens a stream; `block` are its headers, packed.
    Open {
        id: StreamId,
        is_last: bool,
        block: Bytes,
    },
    /// More packed headers, which must be unpacked in their turn.
    Headers {
        id: StreamId,
        is_last: bool,
        block: Bytes,
    },
    Data {
        id: StreamId,
        is_last: bool,
        payload: Bytes,
    },
    Reset {
        id: StreamId,
    },
    Ping(u32),
    GoAway,
    /// Settings, window updates, and what is not known.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("version {0} of SPDY is not spoken")]
    Version(u32),
    #[error("a frame is too short for its kind")]
    TooShort,
}

/// The next frame; `None` when it has not arrived in full.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let Some(head) = buffer.get(..HEAD_BYTES) else {
        return Ok(None);
    };
    let mut head = head;
    let (first, second) = (head.get_u32(), head.get_u32());
    let (flags, length) = ((second >> 24) as u8, (second & 0x00ff_ffff) as usize);
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong(length));
    }
    if buffer.len() < HEAD_BYTES + length {
        buffer.reserve(HEAD_BYTES + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(HEAD_BYTES);
    let payload = buffer.split_to(length).freeze();
    let is_last = flags & FIN != 0;
    if first & CONTROL == 0 {
        let id = first;
        return Ok(Some(Frame::Data {
            id,
            is_last,
            payload,
        }));
    }
    match (first >> 16) & 0x7fff {
        VERSION => control((first & 0xffff) as u16, is_last, payload).map(Some),
        version => Err(FrameError::Version(version)),
    }
}

fn control(kind: u16, is_last: bool, mut payload: Bytes) -> Result<Frame, FrameError> {
    let needed = match kind {
        SYN_STREAM => 10,
        SYN_REPLY | HEADERS | PING => 4,
        RST_STREAM => 8,
        _ => 0,
    };
    if payload.len() < needed {
        return Err(FrameError::TooShort);
    }
    Ok(match kind {
        SYN_STREAM => {
            let id = payload.get_u32() & ID_MASK;
            // The associated stream, the priority and the slot.
            payload.advance(6);
            Frame::Open {
                id,
                is_last,
                block: payload,
            }
        }
        SYN_REPLY | HEADERS => Frame::Headers {
            id: payload.get_u32() & ID_MASK,
            is_last,
            block: payload,
        },
        RST_STREAM => Frame::Reset {
            id: payload.get_u32() & ID_MASK,
        },
        PING => Frame::Ping(payload.get_u32()),
        GOAWAY => Frame::GoAway,
        _ => Frame::Other,
    })
}

fn head(kind: u16, is_last: bool, length: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEAD_BYTES + length);
    out.put_u32(CONTROL | VERSION << 16 | u32::from(kind));
    put_length(&mut out, is_last, length);
    out
}

fn put_length(out: &mut BytesMut, is_last: bool, length: usize) {
    let flags = if is_last { u32::from(FIN) << 24 } else { 0 };
    let length = u32::try_from(length).unwrap_or(u32::MAX) & 0x00ff_ffff;
    out.put_u32(flags | length);
}

/// Opens a stream; `block` are its headers, packed.
pub fn open(id: StreamId, block: &[u8]) -> Bytes {
    let mut out = head(SYN_STREAM, false, 10 + block.len());
    out.put_u32(id);
    // No other stream that it belongs to, the first priority, no slot.
    out.put_slice(&[0; 6]);
    out.put_slice(block);
    out.freeze()
}

/// Accepts a stream; `block` are our headers, packed.
pub fn reply(id: StreamId, block: &[u8]) -> Bytes {
    let mut out = head(SYN_REPLY, false, 4 + block.len());
    out.put_u32(id);
    out.put_slice(block);
    out.freeze()
}

pub fn reset(id: StreamId, status: u32) -> Bytes {
    let mut out = head(RST_STREAM, false, 8);
    out.put_u32(id);
    out.put_u32(status);
    out.freeze()
}

pub fn ping(id: u32) -> Bytes {
    let mut out = head(PING, false, 4);
    out.put_u32(id);
    out.freeze()
}

/// At most 16 MiB less one byte of payload.
pub fn data(id: StreamId, payload: &[u8], is_last: bool) -> Bytes {
    let mut out = BytesMut::with_capacity(HEAD_BYTES + payload.len());
    out.put_u32(id & ID_MASK);
    put_length(&mut out, is_last, payload.len());
    out.put_slice(payload);
    out.freeze()
}
