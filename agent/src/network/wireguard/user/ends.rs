//! The far ends of WireGuard: who is behind which key, what becomes of a packet of the node, and
//! of a datagram of the network. Knows no device and no socket.
//!
//! Invariants: a packet goes to the end whose networks have its destination, and to no other; one
//! that comes is from an address of its end's networks, or dropped.

use crate::network::subnet::Subnet;
use crate::network::wireguard::key::{KeyPair, PublicKey};
use crate::network::wireguard::{Peer, Peers};
use defguard_boringtun::noise::errors::WireGuardError;
use defguard_boringtun::noise::handshake::parse_handshake_anon;
use defguard_boringtun::noise::rate_limiter::RateLimiter;
use defguard_boringtun::noise::{Packet, Tunn, TunnResult};
use defguard_boringtun::x25519;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Between two signs of life, so that whatever translates addresses on the way keeps it open; and,
/// once a peer has been silent, between two tries.
pub const KEEPALIVE_SECONDS: u16 = 25;
/// The one of two ends with the greater key takes longer: else both would begin a session at once,
/// each time that one ends.
const KEEPALIVE_SECONDS_LATER: u16 = 29;
/// Handshakes a second that are worked on without a proof of where they come from. Each counts
/// twice: here, and at its end.
const HANDSHAKES_PER_SECOND: u64 = 200;
/// What encryption adds to a packet.
pub const OVERHEAD_BYTES: usize = 32;
/// Of a handshake, which is larger than a small packet.
pub const HANDSHAKE_BYTES: usize = 148;
/// The lower bits of an index are the end's own.
const INDEX_SHIFT: u32 = 8;
const INDEX_MAX: u32 = (1 << (32 - INDEX_SHIFT)) - 1;
/// The type of the one message that anybody gets, and that anybody can make up who sees others.
const COOKIE_REPLY: u8 = 3;

/// What is to be done.
#[derive(Debug, Eq, PartialEq)]
pub enum Act<'a> {
    /// To the network.
    Send(SocketAddr, &'a [u8]),
    /// To the node.
    Deliver(&'a [u8]),
}

pub struct Ends {
    own: KeyPair,
    public: x25519::PublicKey,
    limiter: Arc<RateLimiter>,
    /// By number.
    ends: BTreeMap<u32, End>,
    numbers: BTreeMap<PublicKey, u32>,
    /// From the first address of a network to its last, and whose it is.
    ways: BTreeMap<IpAddr, (IpAddr, u32)>,
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Ends");
        debug
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}

struct End {
    tunnel: Tunn,
    /// As it was planned, and where it was heard of last.
    planned: Peer,
    endpoint: SocketAddr,
    /// For how many ticks it has not answered; 0 when it has.
    silent_ticks: u32,
}

impl Ends {
    pub fn new(own: KeyPair) -> Self {
        let public = x25519::PublicKey::from(&own.secret);
        Self {
            limiter: Arc::new(RateLimiter::new(&public, HANDSHAKES_PER_SECOND)),
            public,
            own,
            ends: BTreeMap::new(),
            numbers: BTreeMap::new(),
            ways: BTreeMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Makes the ends those of `peers`. One that stays keeps its session; a new one, or one that
    /// moved, is greeted at once: after a restart it still sends by a session that is gone.
    pub fn configure(&mut self, peers: &Peers, buffer: &mut [u8], act: &mut impl FnMut(Act<'_>)) {
        let ends = &mut self.ends;
        self.numbers.retain(|key, number| {
            let stays = peers.contains_key(key);
            if !stays {
                ends.remove(number);
            }
            stays
        });
        for (key, peer) in peers {
            let number = match self.numbers.get(key) {
                Some(number) => *number,
                None => self.number(),
            };
            let known = self.ends.get_mut(&number);
            let has_moved = known
                .as_ref()
                .is_none_or(|end| end.planned.endpoint != peer.endpoint);
            match known {
                Some(end) if !has_moved => {
                    end.planned = peer.clone();
                    continue;
                }
                Some(end) => {
                    end.planned = peer.clone();
                    end.endpoint = peer.endpoint;
                }
                None => {
                    self.numbers.insert(*key, number);
                    self.ends.insert(number, self.end(key, peer, number));
                }
            }
            let end = self.ends.get_mut(&number).expect("it was just put there");
            end.greet(buffer, act);
        }
        self.ways = ways(&self.ends);
    }

    /// The lowest that is free.
    fn number(&self) -> u32 {
        let taken: BTreeSet<u32> = self.ends.keys().copied().collect();
        let mut free = (0..=INDEX_MAX).filter(|number| !taken.contains(number));
        free.next().expect("there are fewer nodes than numbers")
    }

    fn end(&self, key: &PublicKey, peer: &Peer, number: u32) -> End {
        let keepalive = if self.own.public < *key {
            KEEPALIVE_SECONDS
        } else {
            KEEPALIVE_SECONDS_LATER
        };
        let tunnel = Tunn::new(
            self.own.secret.clone(),
            key.0.into(),
            None,
            Some(keepalive),
            number,
            Some(self.limiter.clone()),
        );
        End {
            tunnel,
            planned: peer.clone(),
            endpoint: peer.endpoint,
            silent_ticks: 0,
        }
    }

    fn behind(&self, address: IpAddr) -> Option<u32> {
        let (_, (last, number)) = self.ways.range(..=address).next_back()?;
        (address <= *last).then_some(*number)
    }

    /// Encrypts a packet of the node into the beginning of `out`, which has room for it and the
    /// overhead, and for a handshake. Where to send how many bytes: of the packet, or of a
    /// handshake that has to be before it. None for one that is for nobody.
    pub fn encrypt(&mut self, packet: &[u8], out: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let number = self.behind(Tunn::dst_address(packet)?)?;
        let end = self.ends.get_mut(&number)?;
        match end.tunnel.encapsulate(packet, out) {
            TunnResult::WriteToNetwork(datagram) => Some((end.endpoint, datagram.len())),
            _ => None,
        }
    }

    /// What a datagram brings. `buffer` has room for it, and for a handshake.
    pub fn decrypt(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        buffer: &mut [u8],
        act: &mut impl FnMut(Act<'_>),
    ) {
        // Nothing to look at, but it would ask for what waits.
        if datagram.is_empty() {
            return;
        }
        let number = match self.whose(from, datagram, buffer) {
            Ok(Some(number)) => number,
            Ok(None) => return,
            Err(length) => return act(Act::Send(from, &buffer[..length])),
        };
        let Some(end) = self.ends.get_mut(&number) else {
            return;
        };
        let result = end.tunnel.decapsulate(Some(from.ip()), datagram, buffer);
        let is_proof = |message: &[u8]| message.first() != Some(&COOKIE_REPLY);
        let is_proven = match result {
            TunnResult::Done => is_proof(datagram),
            TunnResult::Err(_) => false,
            TunnResult::WriteToNetwork(answer) => {
                act(Act::Send(from, answer));
                is_proof(answer)
            }
            TunnResult::WriteToTunnelV4(packet, source) => {
                deliver(&self.ways, number, source.into(), packet, act);
                true
            }
            TunnResult::WriteToTunnelV6(packet, source) => {
                deliver(&self.ways, number, source.into(), packet, act);
                true
            }
        };
        if !is_proven {
            return;
        }
        end.heard(from);
        // What waited for a session: one may be there from now on.
        while let TunnResult::WriteToNetwork(waited) = end.tunnel.decapsulate(None, &[], buffer) {
            act(Act::Send(from, waited));
        }
    }

    /// The end that a datagram claims to be of; as an error, the length of an answer in `buffer`
    /// that the sender has to prove its address by.
    fn whose(
        &self,
        from: SocketAddr,
        datagram: &[u8],
        buffer: &mut [u8],
    ) -> Result<Option<u32>, usize> {
        let mut answer = [0; HANDSHAKE_BYTES];
        let packet = self
            .limiter
            .verify_packet(Some(from.ip()), datagram, &mut answer);
        let packet = match packet {
            Ok(packet) => packet,
            Err(TunnResult::WriteToNetwork(answer)) => {
                buffer[..answer.len()].copy_from_slice(answer);
                return Err(answer.len());
            }
            Err(_) => return Ok(None),
        };
        let index = match packet {
            Packet::HandshakeInit(init) => {
                let asking = parse_handshake_anon(&self.own.secret, &self.public, &init);
                let key = asking
                    .ok()
                    .map(|asking| PublicKey(asking.peer_static_public));
                return Ok(key.and_then(|key| self.numbers.get(&key).copied()));
            }
            Packet::HandshakeResponse(response) => response.receiver_idx,
            Packet::PacketCookieReply(reply) => reply.receiver_idx,
            Packet::PacketData(data) => data.receiver_idx,
        };
        Ok(Some(index >> INDEX_SHIFT))
    }

    /// To be called every second: renews keys, repeats what was not answered.
    pub fn tick(&mut self, buffer: &mut [u8], act: &mut impl FnMut(Act<'_>)) {
        self.limiter.reset_count();
        for end in self.ends.values_mut() {
            end.tick(buffer, act);
        }
    }

    #[cfg(test)]
    pub fn endpoints(&self) -> BTreeSet<SocketAddr> {
        self.ends.values().map(|end| end.endpoint).collect()
    }
}

impl End {
    /// Begins a session.
    fn greet(&mut self, buffer: &mut [u8], act: &mut impl FnMut(Act<'_>)) {
        let greeting = self.tunnel.format_handshake_initiation(buffer, true);
        if let TunnResult::WriteToNetwork(greeting) = greeting {
            act(Act::Send(self.endpoint, greeting));
        }
    }

    fn heard(&mut self, from: SocketAddr) {
        self.endpoint = from;
        if std::mem::take(&mut self.silent_ticks) > 0 {
            tracing::info!(%from, "another node answers again over WireGuard");
        }
    }

    fn tick(&mut self, buffer: &mut [u8], act: &mut impl FnMut(Act<'_>)) {
        match self.tunnel.update_timers(buffer) {
            TunnResult::WriteToNetwork(datagram) => act(Act::Send(self.endpoint, datagram)),
            TunnResult::Err(WireGuardError::ConnectionExpired) => {
                if self.silent_ticks == 0 {
                    tracing::warn!(
                        endpoint = %self.endpoint,
                        "another node does not answer over WireGuard: is this UDP port open there?"
                    );
                }
                self.silent_ticks += 1;
                if self.silent_ticks.is_multiple_of(KEEPALIVE_SECONDS.into()) {
                    // It may be heard of elsewhere by now.
                    self.endpoint = self.planned.endpoint;
                    self.greet(buffer, act);
                }
            }
            _ => {}
        }
    }
}

fn deliver(
    ways: &BTreeMap<IpAddr, (IpAddr, u32)>,
    number: u32,
    source: IpAddr,
    packet: &[u8],
    act: &mut impl FnMut(Act<'_>),
) {
    let way = ways.range(..=source).next_back();
    let is_of_it = way.is_some_and(|(_, (last, of))| source <= *last && *of == number);
    if is_of_it {
        act(Act::Deliver(packet));
    }
}

fn ways(ends: &BTreeMap<u32, End>) -> BTreeMap<IpAddr, (IpAddr, u32)> {
    let networks = ends.iter().flat_map(|(number, end)| {
        let networks = end.planned.networks.iter();
        networks.map(move |network: &Subnet| (network.base(), (network.last(), *number)))
    });
    networks.collect()
}

#[cfg(test)]
mod tests;
