//! Reads the kernel's connections and forgets some, by nfnetlink's conntrack subsystem. Layouts are
//! those of linux/netfilter/nfnetlink_conntrack.h.

use super::Flow;
use crate::network::nft::wire::{
    Attributes, DONE, ERROR, FLAG_ACK, FLAG_DUMP, FLAG_INTERRUPTED, Message, Writer, messages,
};
use crate::network::services::steps::Target;
use crate::network::view::Protocol;
use rtnetlink::sys::AsyncSocketExt;
use rtnetlink::sys::{AsyncSocket, SocketAddr, TokioSocket, protocols::NETLINK_NETFILTER};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SUBSYSTEM: u16 = 1;
const GET: u16 = SUBSYSTEM << 8 | 1;
const DELETE: u16 = SUBSYSTEM << 8 | 2;
const NESTED: u16 = 0x8000;

const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const ID: u16 = 12;
const ZONE: u16 = 18;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;

/// What a connection is forgotten by.
struct Handle {
    family: u8,
    tuple: Vec<u8>,
    id: Option<Vec<u8>>,
    zone: Option<Vec<u8>>,
}

/// How many were forgotten of those that the kernel has. An error when some may be left, be it that
/// others were forgotten.
pub async fn forget_flows(is_stale: impl Fn(&Flow) -> bool) -> io::Result<usize> {
    let mut socket = Socket::open()?;
    let mut forgotten = 0;
    let mut is_whole = true;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = u8::try_from(family).expect("families are small");
        let stale = socket.stale(family, &is_stale).await?;
        is_whole &= stale.is_whole;
        for handle in stale.handles {
            forgotten += usize::from(socket.delete(&handle).await?);
        }
    }
    if is_whole {
        Ok(forgotten)
    } else {
        Err(io::Error::from_raw_os_error(libc::EINTR))
    }
}

struct Stale {
    handles: Vec<Handle>,
    /// The kernel does not say that some may be lacking.
    is_whole: bool,
}

struct Socket {
    socket: TokioSocket,
    sequence: u32,
}

impl Socket {
    fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
        socket.socket_mut().bind_auto()?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    async fn send(&mut self, mut message: Vec<u8>) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        message[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        self.socket
            .send_to(&message, &SocketAddr::new(0, 0))
            .await?;
        Ok(self.sequence)
    }

    /// Some may be there twice: no harm.
    async fn stale(&mut self, family: u8, is_stale: &impl Fn(&Flow) -> bool) -> io::Result<Stale> {
        let mut writer = Writer::default();
        let open = writer.begin(GET, FLAG_DUMP, family, 0);
        writer.end(open);
        let sequence = self.send(writer.bytes).await?;
        let mut found = Stale {
            handles: Vec::new(),
            is_whole: true,
        };
        loop {
            let (bytes, _) = self.socket.recv_from_full().await?;
            for message in messages(&bytes).filter(|message| message.sequence == sequence) {
                found.is_whole &= message.flags & FLAG_INTERRUPTED == 0;
                if matches!(message.kind, DONE | ERROR) {
                    ended(&message)?;
                    return Ok(found);
                }
                let attributes = message.attributes();
                if flow(attributes).is_some_and(|flow| is_stale(&flow)) {
                    found.handles.extend(handle(family, attributes));
                }
            }
        }
    }

    /// False when it was gone already.
    async fn delete(&mut self, handle: &Handle) -> io::Result<bool> {
        let mut writer = Writer::default();
        let open = writer.begin(DELETE, FLAG_ACK, handle.family, 0);
        writer.raw(TUPLE_ORIGINAL | NESTED, &handle.tuple);
        for (kind, value) in [(ID, &handle.id), (ZONE, &handle.zone)] {
            if let Some(value) = value {
                writer.raw(kind, value);
            }
        }
        writer.end(open);
        let sequence = self.send(writer.bytes).await?;
        loop {
            let (bytes, _) = self.socket.recv_from_full().await?;
            let mut answers = messages(&bytes);
            let Some(answer) = answers.find(|message| message.sequence == sequence) else {
                continue;
            };
            return match ended(&answer) {
                Ok(()) => Ok(true),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
                Err(error) => Err(error),
            };
        }
    }
}

fn ended(message: &Message<'_>) -> io::Result<()> {
    let code = message.body.first_chunk().copied().map(i32::from_ne_bytes);
    match code {
        Some(code) if code < 0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

fn handle(family: u8, attributes: Attributes<'_>) -> Option<Handle> {
    Some(Handle {
        family,
        tuple: attributes.get(TUPLE_ORIGINAL)?.to_vec(),
        id: attributes.get(ID).map(<[u8]>::to_vec),
        zone: attributes.get(ZONE).map(<[u8]>::to_vec),
    })
}

/// None for what has no ports.
fn flow(attributes: Attributes<'_>) -> Option<Flow> {
    let original = attributes.nested(TUPLE_ORIGINAL);
    let protocol = match original.nested(TUPLE_PROTOCOL).get(1)?.first()? {
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        132 => Protocol::Sctp,
        _ => return None,
    };
    Some(Flow {
        protocol,
        destination: end(original, false)?,
        answers: end(attributes.nested(TUPLE_REPLY), true)?,
    })
}

/// The source or the destination of a tuple.
fn end(tuple: Attributes<'_>, is_source: bool) -> Option<Target> {
    let (v4, v6, port) = if is_source { (1, 3, 2) } else { (2, 4, 3) };
    let ip = tuple.nested(TUPLE_IP);
    let address = match (ip.get(v4), ip.get(v6)) {
        (Some(bytes), _) => IpAddr::from(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        (None, Some(bytes)) => IpAddr::from(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
        (None, None) => return None,
    };
    let port = tuple.nested(TUPLE_PROTOCOL).get(port)?.first_chunk()?;
    Some(Target {
        address,
        port: u16::from_be_bytes(*port),
    })
}
