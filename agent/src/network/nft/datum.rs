//! Values in keys of sets, data of maps and registers, and their kinds. Pure.
//!
//! Invariant: a value takes its bytes padded to four in a concatenation, as the kernel lays out
//! registers; addresses and ports are big-endian, numbers and marks are the host's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Family {
    Ip4,
    Ip6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ip4,
            IpAddr::V6(_) => Self::Ip6,
        }
    }

    /// NFPROTO_IPV4 and NFPROTO_IPV6.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Ip4 => 2,
            Self::Ip6 => 10,
        }
    }

    /// The kind of its addresses.
    pub fn kind(self) -> Kind {
        match self {
            Self::Ip4 => Kind::Ip4,
            Self::Ip6 => Kind::Ip6,
        }
    }
}

/// What a field, or a part of a key, is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    Ip4,
    Ip6,
    /// Of the transport: TCP is 6, UDP 17, SCTP 132.
    Protocol,
    Port,
    /// A number in the host's order: an index, a mark, the index of a link.
    Number,
    /// The name of a link.
    Interface,
}

/// A name of a link with the zero that ends it.
const INTERFACE_BYTES: usize = 16;

impl Kind {
    /// Without padding.
    pub(super) fn width(self) -> u32 {
        match self {
            Self::Protocol => 1,
            Self::Port => 2,
            Self::Ip4 | Self::Number => 4,
            Self::Ip6 | Self::Interface => 16,
        }
    }

    pub(super) fn padded_width(self) -> u32 {
        self.width().next_multiple_of(4)
    }

    /// How `nft` calls it, so that what it prints can be read. The kernel only keeps it.
    pub(super) fn type_number(self) -> u32 {
        match self {
            Self::Ip4 => 7,
            Self::Ip6 => 8,
            Self::Protocol => 12,
            Self::Port => 13,
            Self::Number => 19,
            Self::Interface => 41,
        }
    }

    /// The host's order, which `nft` is told of.
    pub(super) fn is_of_host(self) -> bool {
        matches!(self, Self::Number | Self::Interface)
    }
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Datum {
    Ip4(Ipv4Addr),
    Ip6(Ipv6Addr),
    Protocol(u8),
    Port(u16),
    Number(u32),
    /// At most 15 bytes.
    Interface(String),
}

impl From<IpAddr> for Datum {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::Ip4(address),
            IpAddr::V6(address) => Self::Ip6(address),
        }
    }
}

impl Datum {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ip4(_) => Kind::Ip4,
            Self::Ip6(_) => Kind::Ip6,
            Self::Protocol(_) => Kind::Protocol,
            Self::Port(_) => Kind::Port,
            Self::Number(_) => Kind::Number,
            Self::Interface(_) => Kind::Interface,
        }
    }

    /// Without padding.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ip4(address) => address.octets().to_vec(),
            Self::Ip6(address) => address.octets().to_vec(),
            Self::Protocol(number) => vec![*number],
            Self::Port(port) => port.to_be_bytes().to_vec(),
            Self::Number(number) => number.to_ne_bytes().to_vec(),
            Self::Interface(name) => {
                let mut bytes = name.as_bytes().to_vec();
                bytes.truncate(INTERFACE_BYTES - 1);
                bytes.resize(INTERFACE_BYTES, 0);
                bytes
            }
        }
    }

    /// None when there are too few bytes.
    fn parse(kind: Kind, bytes: &[u8]) -> Option<Self> {
        Some(match kind {
            Kind::Ip4 => Self::Ip4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
            Kind::Ip6 => Self::Ip6(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
            Kind::Protocol => Self::Protocol(*bytes.first()?),
            Kind::Port => Self::Port(u16::from_be_bytes(*bytes.first_chunk()?)),
            Kind::Number => Self::Number(u32::from_ne_bytes(*bytes.first_chunk()?)),
            Kind::Interface => {
                let bytes = bytes.first_chunk::<INTERFACE_BYTES>()?;
                let end = bytes.iter().position(|byte| *byte == 0);
                let name = &bytes[..end.unwrap_or(INTERFACE_BYTES)];
                Self::Interface(String::from_utf8_lossy(name).into_owned())
            }
        })
    }
}

/// A value alone is not padded, each part of a concatenation is.
pub(super) fn concatenated(data: &[Datum]) -> Vec<u8> {
    if let [single] = data {
        return single.bytes();
    }
    let mut all = Vec::new();
    for datum in data {
        all.extend(datum.bytes());
        all.resize(all.len().next_multiple_of(4), 0);
    }
    all
}

/// The opposite. None when the bytes are too few.
pub(super) fn split(kinds: &[Kind], mut bytes: &[u8]) -> Option<Vec<Datum>> {
    let mut data = Vec::with_capacity(kinds.len());
    for kind in kinds {
        data.push(Datum::parse(*kind, bytes)?);
        let width = (kind.padded_width() as usize).min(bytes.len());
        bytes = &bytes[width..];
    }
    Some(data)
}

pub(super) fn total_width(kinds: &[Kind]) -> u32 {
    match kinds {
        [single] => single.width(),
        _ => kinds.iter().map(|kind| kind.padded_width()).sum(),
    }
}

/// As `nft` numbers concatenations.
pub(super) fn type_number(kinds: &[Kind]) -> u32 {
    kinds
        .iter()
        .fold(0, |number, kind| number << 6 | kind.type_number())
}
