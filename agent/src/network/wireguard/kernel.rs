//! The kernel's WireGuard, told of keys and peers over generic netlink. Layouts are those of
//! linux/wireguard.h and linux/genetlink.h.
//!
//! Peers that stay keep their sessions: only what changed is told, and what the kernel has otherwise than
//! it was told, as when somebody took a peer away. It says nothing of such changes: each pass looks. Where a
//! peer is reached is not compared, as the kernel learns that from packets.

use super::key::{BYTES, KeyPair, PublicKey};
use super::user::KEEPALIVE_SECONDS;
use super::{Peer, Peers};
use crate::network::nft::wire::{Attributes, Writer};
use crate::network::subnet::Subnet;
use futures::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use rtnetlink::proto::sys::{SocketAddr as Port, protocols::NETLINK_GENERIC};
use rtnetlink::proto::{ConnectionHandle, new_connection};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The family that tells of families, and its question.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const NAME: &str = "wireguard";
const GET_DEVICE: u8 = 0;
const SET_DEVICE: u8 = 1;
const VERSION: u8 = 1;
/// Command, version, and two bytes of nothing.
const HEADER_BYTES: usize = 4;

const DEVICE_INDEX: u16 = 1;
const DEVICE_PRIVATE_KEY: u16 = 3;
const DEVICE_PUBLIC_KEY: u16 = 4;
const DEVICE_PORT: u16 = 6;
const DEVICE_PEERS: u16 = 8;
const PEER_KEY: u16 = 1;
const PEER_FLAGS: u16 = 3;
const PEER_ENDPOINT: u16 = 4;
const PEER_KEEPALIVE: u16 = 5;
const PEER_NETWORKS: u16 = 9;
const PEER_REMOVE: u32 = 1;
const PEER_REPLACE_NETWORKS: u32 = 2;
const NETWORK_FAMILY: u16 = 1;
const NETWORK_ADDRESS: u16 = 2;
const NETWORK_PREFIX: u16 = 3;

/// In one message, whose attributes are bounded.
const PEERS_PER_MESSAGE: usize = 64;

/// What the kernel was told of peers.
#[derive(Debug, Default)]
pub struct Device {
    told: Option<Told>,
}

#[derive(Debug)]
struct Told {
    index: u32,
    peers: Peers,
}

/// What the kernel has.
#[derive(Debug, Default, Eq, PartialEq)]
struct Found {
    key: Option<PublicKey>,
    port: Option<u16>,
    peers: BTreeMap<PublicKey, BTreeSet<Subnet>>,
}

/// One peer's change.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Change<'a> {
    Remove(PublicKey),
    Set(PublicKey, &'a Peer),
}

impl Device {
    pub async fn set(
        &mut self,
        index: u32,
        own: &KeyPair,
        port: u16,
        peers: &Peers,
    ) -> io::Result<()> {
        let mut socket = Socket::open().await?;
        let found = socket.device(index).await?;
        if found.key != Some(own.public) || found.port != Some(port) {
            socket.tell(basics(index, own, port)).await?;
        }
        // Unknown until all of it is told.
        let told = self.told.take_if(|told| told.index == index);
        let told = told.map(|told| told.peers).unwrap_or_default();
        for part in changes(&told, &found, peers).chunks(PEERS_PER_MESSAGE) {
            socket.tell(peer_changes(index, part)).await?;
        }
        let peers = peers.clone();
        self.told = Some(Told { index, peers });
        Ok(())
    }
}

/// Those that go come first: a network may go to another peer.
fn changes<'a>(told: &Peers, found: &Found, to: &'a Peers) -> Vec<Change<'a>> {
    let gone = found.peers.keys().filter(|key| !to.contains_key(key));
    let gone = gone.map(|key| Change::Remove(*key));
    let is_so = |key: &PublicKey, peer: &Peer| {
        let networks = peer.networks.iter().copied().collect();
        told.get(key) == Some(peer) && found.peers.get(key) == Some(&networks)
    };
    let new = to.iter().filter(|(key, peer)| !is_so(key, peer));
    gone.chain(new.map(|(key, peer)| Change::Set(*key, peer)))
        .collect()
}

fn command(command: u8) -> Writer {
    let mut writer = Writer::default();
    writer.bytes.extend([command, VERSION, 0, 0]);
    writer
}

fn basics(index: u32, own: &KeyPair, port: u16) -> Vec<u8> {
    let mut writer = command(SET_DEVICE);
    writer.raw(DEVICE_INDEX, &index.to_ne_bytes());
    writer.raw(DEVICE_PRIVATE_KEY, own.secret.as_bytes());
    writer.raw(DEVICE_PORT, &port.to_ne_bytes());
    writer.bytes
}

fn peer_changes(index: u32, changes: &[Change<'_>]) -> Vec<u8> {
    let mut writer = command(SET_DEVICE);
    writer.raw(DEVICE_INDEX, &index.to_ne_bytes());
    writer.nested(DEVICE_PEERS, |list| {
        for change in changes {
            list.nested(0, |peer| put_peer(peer, change));
        }
    });
    writer.bytes
}

fn put_peer(writer: &mut Writer, change: &Change<'_>) {
    let peer = match change {
        Change::Remove(key) => {
            writer.raw(PEER_KEY, &key.0);
            writer.raw(PEER_FLAGS, &PEER_REMOVE.to_ne_bytes());
            return;
        }
        Change::Set(key, peer) => {
            writer.raw(PEER_KEY, &key.0);
            peer
        }
    };
    writer.raw(PEER_FLAGS, &PEER_REPLACE_NETWORKS.to_ne_bytes());
    writer.raw(PEER_ENDPOINT, &socket_address(peer.endpoint));
    writer.raw(PEER_KEEPALIVE, &KEEPALIVE_SECONDS.to_ne_bytes());
    writer.nested(PEER_NETWORKS, |list| {
        for network in &peer.networks {
            list.nested(0, |one| put_network(one, network));
        }
    });
}

fn put_network(writer: &mut Writer, network: &Subnet) {
    let family = |number: i32| u16::try_from(number).expect("families are small");
    match network.base() {
        IpAddr::V4(base) => {
            writer.raw(NETWORK_FAMILY, &family(libc::AF_INET).to_ne_bytes());
            writer.raw(NETWORK_ADDRESS, &base.octets());
        }
        IpAddr::V6(base) => {
            writer.raw(NETWORK_FAMILY, &family(libc::AF_INET6).to_ne_bytes());
            writer.raw(NETWORK_ADDRESS, &base.octets());
        }
    }
    writer.raw(NETWORK_PREFIX, &[network.prefix_length]);
}

/// A sockaddr_in or sockaddr_in6.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let family = |number: i32| u16::try_from(number).expect("families are small");
    let mut bytes = Vec::with_capacity(28);
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(family(libc::AF_INET).to_ne_bytes());
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(family(libc::AF_INET6).to_ne_bytes());
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend(v6.flowinfo().to_ne_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

impl Found {
    /// One part of the answer to GET_DEVICE. What stands in one part alone is not taken from others;
    /// a peer whose networks are more than one part holds comes again with the rest.
    fn read(&mut self, body: &[u8]) {
        let device = Attributes(body.get(HEADER_BYTES..).unwrap_or_default());
        self.key = self.key.or(key(device.get(DEVICE_PUBLIC_KEY)));
        let port = device
            .get(DEVICE_PORT)
            .and_then(|port| port.try_into().ok());
        self.port = self.port.or(port.map(u16::from_ne_bytes));
        for (_, peer) in device.nested(DEVICE_PEERS).iter() {
            let peer = Attributes(peer);
            let Some(key) = key(peer.get(PEER_KEY)) else {
                continue;
            };
            let networks = peer.nested(PEER_NETWORKS);
            let networks = networks.iter().filter_map(|(_, one)| network(one));
            self.peers.entry(key).or_default().extend(networks);
        }
    }
}

fn key(bytes: Option<&[u8]>) -> Option<PublicKey> {
    let key: [u8; BYTES] = bytes?.try_into().ok()?;
    Some(PublicKey(key))
}

fn network(body: &[u8]) -> Option<Subnet> {
    let attributes = Attributes(body);
    let address = attributes.get(NETWORK_ADDRESS)?;
    let v4 = || Some(IpAddr::from(<[u8; 4]>::try_from(address).ok()?));
    let v6 = || Some(IpAddr::from(<[u8; 16]>::try_from(address).ok()?));
    Subnet::new(v4().or_else(v6)?, *attributes.get(NETWORK_PREFIX)?.first()?)
}

/// A message of any family: its type, and what follows the header.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Raw {
    kind: u16,
    body: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self {
            kind: header.message_type,
            body: payload.to_vec(),
        })
    }
}

struct Socket {
    handle: ConnectionHandle<Raw>,
    family: u16,
    /// Ends with the socket.
    _connection: tokio::task::JoinSet<()>,
}

impl Socket {
    async fn open() -> io::Result<Self> {
        let (connection, handle, _) = new_connection::<Raw>(NETLINK_GENERIC)?;
        let mut task = tokio::task::JoinSet::new();
        task.spawn(connection);
        let mut socket = Self {
            handle,
            family: CONTROL,
            _connection: task,
        };
        let mut question = command(GET_FAMILY);
        question.text(FAMILY_NAME, NAME);
        let answers = socket.ask(question.bytes, NLM_F_ACK).await?;
        let id = answers.iter().find_map(|body| {
            let attributes = Attributes(body.get(HEADER_BYTES..)?);
            Some(u16::from_ne_bytes(
                *attributes.get(FAMILY_ID)?.first_chunk()?,
            ))
        });
        socket.family = id.ok_or(io::ErrorKind::Unsupported)?;
        Ok(socket)
    }

    async fn tell(&mut self, body: Vec<u8>) -> io::Result<()> {
        self.ask(body, NLM_F_ACK).await.map(|_| ())
    }

    async fn device(&mut self, index: u32) -> io::Result<Found> {
        let mut question = command(GET_DEVICE);
        question.raw(DEVICE_INDEX, &index.to_ne_bytes());
        let answers = self.ask(question.bytes, NLM_F_DUMP).await?;
        let mut found = Found::default();
        answers.iter().for_each(|body| found.read(body));
        Ok(found)
    }

    /// The bodies of all answers.
    async fn ask(&mut self, body: Vec<u8>, flags: u16) -> io::Result<Vec<Vec<u8>>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let kind = self.family;
        let payload = NetlinkPayload::InnerMessage(Raw { kind, body });
        let message = NetlinkMessage::new(header, payload);
        let asked = self.handle.request(message, Port::new(0, 0));
        let mut answers = asked.map_err(io::Error::other)?;
        let mut bodies = Vec::new();
        while let Some(answer) = answers.next().await {
            match answer.payload {
                NetlinkPayload::InnerMessage(raw) => bodies.push(raw.body),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                _ => {}
            }
        }
        Ok(bodies)
    }
}

#[cfg(test)]
mod tests;
