//! What of a packet and its connection a rule can look at, and how it is loaded into registers.

use super::datum::{Family, Kind};
use super::wire::Writer;

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Field {
    /// Address of the IP header. The rule then is for packets of that family alone.
    Source(Family),
    Destination(Family),
    /// Of the transport.
    Protocol,
    /// Of TCP, UDP or SCTP. Look at `Protocol` too: other transports have other things there.
    SourcePort,
    DestinationPort,
    Mark,
    /// Names of the links; there is none on output or input.
    InputLink,
    OutputLink,
    /// A kind of `FIB_LOCAL` and others: where the source lies by the routes, or the destination.
    SourceType,
    DestinationType,
    /// Number of the link that a packet came by, where the routes lead to its source by that link;
    /// else 0. Before routing alone.
    WayBack,
    /// A bit of `CT_NEW` and others.
    ConnectionState,
    /// Bits: `CT_DNAT` and others.
    ConnectionStatus,
    ConnectionMark,
    /// As the first packet of the connection had it when it came.
    OriginalSource(Family),
    OriginalDestination(Family),
    OriginalDestinationPort,
    /// 0 in the direction of the first packet, 1 in that of the answer. Kind `Protocol`: one byte.
    ConnectionDirection,
}

/// `Field::DestinationType` of this host's own addresses (RTN_LOCAL).
pub const FIB_LOCAL: u32 = 2;
/// `Field::ConnectionState`.
pub const CT_INVALID: u32 = 1;
pub const CT_ESTABLISHED: u32 = 2;
pub const CT_RELATED: u32 = 4;
pub const CT_NEW: u32 = 8;
/// `Field::ConnectionStatus`: the source or the destination was translated.
pub const CT_SNAT: u32 = 1 << 4;
pub const CT_DNAT: u32 = 1 << 5;

impl Field {
    pub fn kind(self) -> Kind {
        match self {
            Self::Source(family)
            | Self::Destination(family)
            | Self::OriginalSource(family)
            | Self::OriginalDestination(family) => family.kind(),
            Self::Protocol | Self::ConnectionDirection => Kind::Protocol,
            Self::SourcePort | Self::DestinationPort | Self::OriginalDestinationPort => Kind::Port,
            Self::InputLink | Self::OutputLink => Kind::Interface,
            Self::Mark
            | Self::SourceType
            | Self::DestinationType
            | Self::WayBack
            | Self::ConnectionState
            | Self::ConnectionStatus
            | Self::ConnectionMark => Kind::Number,
        }
    }

    /// The family that packets must be of, for the load to mean anything.
    pub(super) fn needs(self) -> Option<Family> {
        match self {
            Self::Source(family) | Self::Destination(family) => Some(family),
            _ => None,
        }
    }

    /// The expression that puts it into a register.
    pub(super) fn load(self, writer: &mut Writer, register: u32) {
        match self {
            Self::Source(Family::Ip4) => payload(writer, register, NETWORK, 12, 4),
            Self::Destination(Family::Ip4) => payload(writer, register, NETWORK, 16, 4),
            Self::Source(Family::Ip6) => payload(writer, register, NETWORK, 8, 16),
            Self::Destination(Family::Ip6) => payload(writer, register, NETWORK, 24, 16),
            Self::SourcePort => payload(writer, register, TRANSPORT, 0, 2),
            Self::DestinationPort => payload(writer, register, TRANSPORT, 2, 2),
            Self::Protocol => meta(writer, register, META_L4PROTO),
            Self::Mark => meta(writer, register, META_MARK),
            Self::InputLink => meta(writer, register, META_IIFNAME),
            Self::OutputLink => meta(writer, register, META_OIFNAME),
            Self::SourceType => fib(writer, register, FIB_TYPE, OF_SOURCE),
            Self::DestinationType => fib(writer, register, FIB_TYPE, OF_DESTINATION),
            Self::WayBack => fib(writer, register, FIB_LINK, OF_SOURCE | OF_INPUT_LINK),
            Self::ConnectionState => connection(writer, register, CT_KEY_STATE, false),
            Self::ConnectionDirection => connection(writer, register, CT_KEY_DIRECTION, false),
            Self::ConnectionStatus => connection(writer, register, CT_KEY_STATUS, false),
            Self::ConnectionMark => connection(writer, register, CT_KEY_MARK, false),
            Self::OriginalSource(Family::Ip4) => connection(writer, register, CT_SRC_IP, true),
            Self::OriginalSource(Family::Ip6) => connection(writer, register, CT_SRC_IP6, true),
            Self::OriginalDestination(Family::Ip4) => {
                connection(writer, register, CT_DST_IP, true);
            }
            Self::OriginalDestination(Family::Ip6) => {
                connection(writer, register, CT_DST_IP6, true);
            }
            Self::OriginalDestinationPort => connection(writer, register, CT_PROTO_DST, true),
        }
    }
}

/// Bases of a payload.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

pub(super) const META_MARK: u32 = 3;
const META_IIFNAME: u32 = 6;
const META_OIFNAME: u32 = 7;
pub(super) const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;

const CT_KEY_STATE: u32 = 0;
const CT_KEY_DIRECTION: u32 = 1;
const CT_KEY_STATUS: u32 = 2;
pub(super) const CT_KEY_MARK: u32 = 3;
const CT_PROTO_DST: u32 = 12;
const CT_SRC_IP: u32 = 19;
const CT_DST_IP: u32 = 20;
const CT_SRC_IP6: u32 = 21;
const CT_DST_IP6: u32 = 22;

/// An element of a list of expressions: its name, and its attributes.
pub(super) fn expression(writer: &mut Writer, name: &str, fill: impl FnOnce(&mut Writer)) {
    writer.nested(1, |element| {
        element.text(1, name);
        element.nested(2, fill);
    });
}

fn payload(writer: &mut Writer, register: u32, base: u32, offset: u32, length: u32) {
    expression(writer, "payload", |data| {
        data.u32(1, register);
        data.u32(2, base);
        data.u32(3, offset);
        data.u32(4, length);
    });
}

pub(super) fn meta(writer: &mut Writer, register: u32, key: u32) {
    expression(writer, "meta", |data| {
        data.u32(2, key);
        data.u32(1, register);
    });
}

fn connection(writer: &mut Writer, register: u32, key: u32, of_original: bool) {
    expression(writer, "ct", |data| {
        data.u32(2, key);
        data.u32(1, register);
        if of_original {
            data.raw(3, &[0]);
        }
    });
}

/// What is looked up, and of what.
const FIB_LINK: u32 = 1;
const FIB_TYPE: u32 = 3;
const OF_SOURCE: u32 = 1;
const OF_DESTINATION: u32 = 2;
const OF_INPUT_LINK: u32 = 8;

fn fib(writer: &mut Writer, register: u32, result: u32, of: u32) {
    expression(writer, "fib", |data| {
        data.u32(3, of);
        data.u32(2, result);
        data.u32(1, register);
    });
}
