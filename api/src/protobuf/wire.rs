//! Protobuf's wire format: tags, varints, lengths. Knows no message.

use super::ProtobufError;

/// A varint is at most ten bytes of seven bits.
const VARINT_BYTES_MAX: usize = 10;

/// What stands behind a tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'b> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'b [u8]),
}

/// Takes fields off the front of a message.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub fn new(message: &'b [u8]) -> Self {
        Self { rest: message }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and content; `None` at the end of the message.
    pub fn next(&mut self) -> Result<Option<(u32, Raw<'b>)>, ProtobufError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => number,
            _ => return Err(ProtobufError::Tag(tag)),
        };
        let raw = match tag & 7 {
            0 => Raw::Varint(self.varint()?),
            1 => Raw::Fixed64(self.fixed64()?),
            2 => {
                let length =
                    usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups went out of use before Kubernetes came.
            _ => return Err(ProtobufError::Tag(tag)),
        };
        Ok(Some((number, raw)))
    }

    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at == VARINT_BYTES_MAX - 1 && bits > 1 {
                return Err(ProtobufError::Overflow);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < VARINT_BYTES_MAX {
            ProtobufError::Truncated
        } else {
            ProtobufError::Overflow
        })
    }

    pub fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| ProtobufError::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn put_raw_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_raw_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

pub fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, 0);
    put_raw_varint(out, value);
}

/// Negative numbers take ten bytes, as `int32` and `int64` have it.
pub fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, number, value.cast_unsigned());
}

pub fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_tag(out, number, 1);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, 2);
    put_raw_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A field whose length is known only when `body` has written it.
pub fn delimited<E>(
    out: &mut Vec<u8>,
    number: u32,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(out, number, 2);
    let start = out.len();
    body(out)?;
    let end = out.len();
    put_raw_varint(out, (end - start) as u64);
    let width = out.len() - end;
    out[start..].rotate_right(width);
    Ok(())
}
