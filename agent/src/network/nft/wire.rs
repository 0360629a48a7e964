//! Netlink messages: headers, and attributes with their nesting. Bytes in, bytes out.
//!
//! Numbers of nf_tables are big-endian, headers and lengths are the host's. Reading never fails on
//! what it does not know; a length that lies ends the reading.

/// The subsystem of nf_tables in nfnetlink.
pub const SUBSYSTEM: u16 = 10;
/// NFPROTO_INET, the family of the table.
pub const FAMILY_INET: u8 = 1;
pub const FAMILY_IP4: u8 = 2;
pub const FAMILY_IP6: u8 = 10;
pub const FAMILY_UNSPECIFIED: u8 = 0;

pub const FLAG_REQUEST: u16 = 1;
pub const FLAG_ACK: u16 = 4;
pub const FLAG_DUMP: u16 = 0x300;
pub const FLAG_CREATE: u16 = 0x400;
pub const FLAG_APPEND: u16 = 0x800;
pub const FLAG_REPLACE: u16 = 0x100;
/// A dump that changed while it was read.
pub const FLAG_INTERRUPTED: u16 = 0x10;

pub const ERROR: u16 = 2;
pub const DONE: u16 = 3;
pub const BATCH_BEGIN: u16 = 16;
pub const BATCH_END: u16 = 17;

const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;
pub const HEADER_BYTES: usize = 16;
/// The header of nfnetlink behind that of netlink.
const SUBHEADER_BYTES: usize = 4;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The length of an attribute is 16 bits.
pub const ATTRIBUTE_BYTES_MAX: usize = u16::MAX as usize;

/// The type of a message of nf_tables.
pub const fn message_type(number: u16) -> u16 {
    SUBSYSTEM << 8 | number
}

/// Appends messages to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

/// Where a message or a nested attribute began; to be ended by `Writer::end_*`.
#[derive(Debug)]
#[must_use]
pub struct Open(usize);

impl Writer {
    /// The port and the sequence are put in when it is sent.
    pub fn begin(&mut self, kind: u16, flags: u16, family: u8, resource: u16) -> Open {
        let open = Open(self.bytes.len());
        self.bytes.extend(0u32.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | FLAG_REQUEST).to_ne_bytes());
        self.bytes.extend([0; 8]);
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        open
    }

    pub fn end(&mut self, open: Open) {
        let length = u32::try_from(self.bytes.len() - open.0).expect("a message is bounded");
        self.bytes[open.0..open.0 + 4].copy_from_slice(&length.to_ne_bytes());
    }

    pub fn nest(&mut self, kind: u16) -> Open {
        let open = Open(self.bytes.len());
        self.bytes.extend(0u16.to_ne_bytes());
        self.bytes.extend((kind | NESTED).to_ne_bytes());
        open
    }

    pub fn end_nest(&mut self, open: Open) {
        let length = u16::try_from(self.bytes.len() - open.0).expect("an attribute is bounded");
        self.bytes[open.0..open.0 + 2].copy_from_slice(&length.to_ne_bytes());
    }

    pub fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let open = self.nest(kind);
        fill(self);
        self.end_nest(open);
    }

    pub fn raw(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len());
        let length = length.expect("an attribute is bounded");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// With the zero that ends it.
    pub fn text(&mut self, kind: u16, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.raw(kind, &bytes);
    }

    pub fn u32(&mut self, kind: u16, value: u32) {
        self.raw(kind, &value.to_be_bytes());
    }

    pub fn u64(&mut self, kind: u16, value: u64) {
        self.raw(kind, &value.to_be_bytes());
    }
}

/// One message of an answer, with the attributes behind its headers.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub port: u32,
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Of nf_tables; None for one of another subsystem.
    pub fn number(&self) -> Option<u16> {
        (self.kind >> 8 == SUBSYSTEM).then_some(self.kind & 0xff)
    }

    pub fn attributes(&self) -> Attributes<'a> {
        Attributes(self.body.get(SUBHEADER_BYTES..).unwrap_or_default())
    }

    /// Of the table that it is about: NFPROTO_INET is ours.
    pub fn family(&self) -> u8 {
        self.body.first().copied().unwrap_or_default()
    }
}

/// The messages of a buffer, in their order.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            return None;
        }
        let (message, rest) = bytes.split_at(length);
        let padding = (length.next_multiple_of(4) - length).min(rest.len());
        bytes = &rest[padding..];
        let half = |at: usize| u16::from_ne_bytes([message[at], message[at + 1]]);
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| message[at + byte]));
        Some(Message {
            kind: half(4),
            flags: half(6),
            sequence: word(8),
            port: word(12),
            body: &message[HEADER_BYTES..],
        })
    })
}

/// Attributes that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut bytes = self.0;
        std::iter::from_fn(move || {
            let (length, kind) = (bytes.first_chunk::<2>()?, bytes.get(2..4)?);
            let length = u16::from_ne_bytes(*length) as usize;
            let kind = u16::from_ne_bytes([kind[0], kind[1]]) & TYPE_MASK;
            if length < ATTRIBUTE_HEADER_BYTES || length > bytes.len() {
                return None;
            }
            let value = &bytes[ATTRIBUTE_HEADER_BYTES..length];
            bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
            Some((kind, value))
        })
    }

    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.iter()
            .find_map(|(found, value)| (found == kind).then_some(value))
    }

    pub fn nested(self, kind: u16) -> Attributes<'a> {
        Attributes(self.get(kind).unwrap_or_default())
    }

    pub fn u32(self, kind: u16) -> Option<u32> {
        Some(u32::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    pub fn u64(self, kind: u16) -> Option<u64> {
        Some(u64::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    pub fn text(self, kind: u16) -> Option<String> {
        let bytes = self.get(kind)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}
