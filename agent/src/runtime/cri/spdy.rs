//! SPDY/3.1 as its client, as much of it as streams of a command need. Pure.
//!
//! Streams are opened here and closed by either side. The runtime's answers have no headers that
//! matter, so their blocks are not unpacked; ours are sent as they are, in stored blocks of zlib.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// More than this in one frame is no runtime of ours.
const FRAME_BYTES_MAX: usize = 1 << 20;
const HEAD_BYTES: usize = 8;
const CONTROL_VERSION_3: u32 = 0x8003_0000;
const FIN: u32 = 0x0100_0000;
const ID_MASK: u32 = 0x7fff_ffff;
const SYN_STREAM: u32 = 1;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    Data {
        stream: u32,
        is_last: bool,
        payload: Bytes,
    },
    Reset(u32),
    Ping(u32),
    GoAway,
    /// Replies, settings, window updates.
    Other,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a frame of {0} bytes is no frame of SPDY/3.1")]
pub struct FrameError(usize);

/// The next frame; None when it has not arrived in full.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let Some(mut head) = buffer.get(..HEAD_BYTES) else {
        return Ok(None);
    };
    let (first, second) = (head.get_u32(), head.get_u32());
    let length = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
        return Err(FrameError(length));
    }
    if buffer.len() < HEAD_BYTES + length {
        buffer.reserve(HEAD_BYTES + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(HEAD_BYTES);
    let mut payload = buffer.split_to(length).freeze();
    if first & !ID_MASK == 0 {
        return Ok(Some(Frame::Data {
            stream: first,
            is_last: second & FIN != 0,
            payload,
        }));
    }
    let mut number = || payload.try_get_u32().map_err(|_| FrameError(length));
    Ok(Some(match (first & 0xffff) as u16 {
        RST_STREAM => Frame::Reset(number()? & ID_MASK),
        PING => Frame::Ping(number()?),
        GOAWAY => Frame::GoAway,
        _ => Frame::Other,
    }))
}

/// Streams, opened one after the other by one connection.
#[derive(Debug, Default)]
pub struct Opener {
    count: u32,
}

impl Opener {
    /// A stream's number, which is odd, and the frame that opens it.
    pub fn open(&mut self, headers: &[(&str, &str)]) -> (u32, Bytes) {
        let stream = self.count * 2 + 1;
        let block = self.pack(headers);
        self.count += 1;
        let mut frame = BytesMut::with_capacity(HEAD_BYTES + 10 + block.len());
        frame.put_u32(CONTROL_VERSION_3 | SYN_STREAM);
        frame.put_u32(length(10 + block.len()));
        frame.put_u32(stream);
        // No other stream that it belongs to, the first priority, no slot.
        frame.put_slice(&[0; 6]);
        frame.put_slice(&block);
        (stream, frame.freeze())
    }

    /// All blocks of a connection are one stream of zlib, whose head the first one has.
    fn pack(&self, headers: &[(&str, &str)]) -> Bytes {
        const ZLIB_HEAD: [u8; 2] = [0x78, 0x01];
        /// An empty stored block, upon which readers give out what they have.
        const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];
        let mut plain = BytesMut::new();
        plain.put_u32(headers.len() as u32);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.put_u32(text.len() as u32);
            plain.put_slice(text.as_bytes());
        }
        let size = plain.len() as u16; // Headers of streams are some tens of bytes.
        let mut packed = BytesMut::new();
        if self.count == 0 {
            packed.put_slice(&ZLIB_HEAD);
        }
        packed.put_u8(0);
        packed.put_u16_le(size);
        packed.put_u16_le(!size);
        packed.put_slice(&plain);
        packed.put_slice(&FLUSH);
        packed.freeze()
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX) & 0x00ff_ffff
}

/// At most 16 MiB less one byte of payload.
pub fn data(stream: u32, payload: &[u8], is_last: bool) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD_BYTES + payload.len());
    frame.put_u32(stream & ID_MASK);
    frame.put_u32(length(payload.len()) | if is_last { FIN } else { 0 });
    frame.put_slice(payload);
    frame.freeze()
}

pub fn pong(id: u32) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD_BYTES + 4);
    frame.put_u32(CONTROL_VERSION_3 | u32::from(PING));
    frame.put_u32(4);
    frame.put_u32(id);
    frame.freeze()
}

#[cfg(test)]
mod tests;
