//! Frames of the stream between API server and agent: channel u8, length u32 big-endian, payload.
//!
//! Pure codec; no I/O. A payload is at most 64 KiB, so one stream cannot make the other side
//! hold more than that for a frame.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bounds what a peer can make us buffer for one frame; terminals and logs use far smaller ones.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

const HEADER_BYTES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Stdin,
    Stdout,
    Stderr,
    /// One v1 Status as JSON, at the end.
    Error,
    /// `{"Width":..,"Height":..}`.
    Resize,
    /// The payload is the number of the channel that is closed.
    Close,
}

impl Channel {
    pub fn number(self) -> u8 {
        match self {
            Self::Stdin => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Error => 3,
            Self::Resize => 4,
            Self::Close => 255,
        }
    }

    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Stdin,
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Error,
            4 => Self::Resize,
            255 => Self::Close,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub channel: Channel,
    pub payload: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("frame on unknown channel {0}")]
    UnknownChannel(u8),
    #[error("frame of {0} bytes, the limit is {PAYLOAD_BYTES_MAX}")]
    TooLarge(usize),
}

/// Writes frames into a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder;

impl Encoder {
    /// Appends `payload`, split over as many frames as its size asks for; an empty payload is
    /// one empty frame.
    pub fn encode(&self, channel: Channel, payload: &[u8], out: &mut BytesMut) {
        let mut rest = payload;
        loop {
            let (now, later) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
            out.reserve(HEADER_BYTES + now.len());
            out.put_u8(channel.number());
            out.put_u32(u32::try_from(now.len()).expect("at most PAYLOAD_BYTES_MAX"));
            out.put_slice(now);
            rest = later;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// The frame that says `closed` carries no more.
    pub fn close(&self, closed: Channel, out: &mut BytesMut) {
        self.encode(Channel::Close, &[closed.number()], out);
    }
}

/// Takes whole frames off the front of a buffer that the caller fills.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder;

impl Decoder {
    /// The next frame, `None` when more bytes are needed. After an error the stream is lost.
    pub fn decode(&self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(&number) = buffer.first() else {
            return Ok(None);
        };
        let channel = Channel::from_number(number).ok_or(FrameError::UnknownChannel(number))?;
        let Some(mut length) = buffer.get(1..HEADER_BYTES) else {
            return Ok(None);
        };
        let length = length.get_u32() as usize;
        if length > PAYLOAD_BYTES_MAX {
            return Err(FrameError::TooLarge(length));
        }
        if buffer.len() < HEADER_BYTES + length {
            buffer.reserve(HEADER_BYTES + length - buffer.len());
            return Ok(None);
        }
        buffer.advance(HEADER_BYTES);
        Ok(Some(Frame {
            channel,
            payload: buffer.split_to(length).freeze(),
        }))
    }
}

#[cfg(test)]
mod tests;
