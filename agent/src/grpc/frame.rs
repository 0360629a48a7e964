//! Where one message ends and the next begins. Pure.

use super::{Code, Status};
use bytes::{Buf, Bytes, BytesMut};

/// One byte for compression, four of length: what is before each message.
pub const PREFIX_BYTES: usize = 5;

/// The next message, once it has arrived in full.
pub fn take(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Bytes>, Status> {
    let Some(mut prefix) = buffer.get(..PREFIX_BYTES) else {
        return Ok(None);
    };
    if prefix.get_u8() != 0 {
        let message = "grpc: the message is compressed, which was not asked for";
        return Err(Status::internal(message));
    }
    let length = usize::try_from(prefix.get_u32()).unwrap_or(usize::MAX);
    if length > bytes_max {
        let message = format!("grpc: received message larger than max ({length} vs. {bytes_max})");
        return Err(Status::new(Code::RESOURCE_EXHAUSTED, message));
    }
    if buffer.len() < PREFIX_BYTES + length {
        buffer.reserve(PREFIX_BYTES + length - buffer.len());
        return Ok(None);
    }
    buffer.advance(PREFIX_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}
