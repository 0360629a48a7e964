//! Two and more nodes that send each other what they have to, without a device or a socket.

use super::{Act, Ends};
use crate::network::subnet::Subnet;
use crate::network::wireguard::key::{KeyPair, PublicKey};
use crate::network::wireguard::{Peer, Peers};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A node with its own network `10.42.N.0/24` and `fd42:N::/64`, at `10.99.0.N:51820`.
struct Node {
    number: u8,
    own: KeyPair,
    ends: Ends,
    /// What its pods got.
    delivered: Vec<Vec<u8>>,
}

fn at(number: u8) -> SocketAddr {
    ([10, 99, 0, number], 51820).into()
}

fn peer(number: u8) -> Peer {
    let networks = [
        format!("10.42.{number}.0/24"),
        format!("fd42:{number}::/64"),
    ];
    Peer {
        endpoint: at(number),
        networks: networks.map(|text| Subnet::parse(&text).unwrap()).into(),
    }
}

impl Node {
    fn new(number: u8) -> Self {
        Self::with(number, KeyPair::new())
    }

    fn with(number: u8, own: KeyPair) -> Self {
        Self {
            number,
            ends: Ends::new(own.clone()),
            own,
            delivered: Vec::new(),
        }
    }

    fn public(&self) -> PublicKey {
        self.own.public
    }
}

/// The nodes and the network between them.
struct Site {
    nodes: Vec<Node>,
    /// From, to, datagram.
    wire: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// All that was ever on it.
    seen: Vec<Vec<u8>>,
}

impl Site {
    fn new(nodes: Vec<Node>) -> Self {
        Self {
            nodes,
            wire: VecDeque::new(),
            seen: Vec::new(),
        }
    }

    fn node(&mut self, number: u8) -> &mut Node {
        let mut nodes = self.nodes.iter_mut();
        nodes.find(|node| node.number == number).unwrap()
    }

    fn put(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.seen.push(datagram.to_vec());
        self.wire.push_back((from, to, datagram.to_vec()));
    }

    /// Everyone is told of everyone.
    fn configure(&mut self) {
        let keys: Vec<_> = self
            .nodes
            .iter()
            .map(|node| (node.number, node.public()))
            .collect();
        for (number, _) in &keys {
            let others = keys.iter().filter(|(other, _)| other != number);
            let peers: Peers = others.map(|(other, key)| (*key, peer(*other))).collect();
            self.tell(*number, &peers);
        }
    }

    fn tell(&mut self, number: u8, peers: &Peers) {
        let mut sent = Vec::new();
        let mut act = |act: Act<'_>| match act {
            Act::Send(to, datagram) => sent.push((to, datagram.to_vec())),
            Act::Deliver(_) => panic!("nothing came"),
        };
        self.node(number)
            .ends
            .configure(peers, &mut BUFFER.to_vec(), &mut act);
        for (to, datagram) in sent {
            self.put(at(number), to, &datagram);
        }
    }

    /// A pod's packet, whoever it is for.
    fn send(&mut self, number: u8, packet: &[u8]) -> bool {
        let mut out = BUFFER.to_vec();
        let Some((to, bytes)) = self.node(number).ends.encrypt(packet, &mut out) else {
            return false;
        };
        self.put(at(number), to, &out[..bytes]);
        true
    }

    /// Until nothing is on its way.
    fn settle(&mut self) {
        while let Some((from, to, datagram)) = self.wire.pop_front() {
            let Some(node) = self.nodes.iter_mut().find(|node| at(node.number) == to) else {
                continue;
            };
            let mut sent = Vec::new();
            let delivered = &mut node.delivered;
            let mut act = |act: Act<'_>| match act {
                Act::Send(to, datagram) => sent.push((to, datagram.to_vec())),
                Act::Deliver(packet) => delivered.push(packet.to_vec()),
            };
            node.ends
                .decrypt(from, &datagram, &mut BUFFER.to_vec(), &mut act);
            for (answer_to, answer) in sent {
                self.put(to, answer_to, &answer);
            }
        }
    }
}

/// Room for any datagram here.
const BUFFER: [u8; 2000] = [0; 2000];

const TEXT: &[u8] = b"what a pod says to another";

/// An IPv4 packet with a text in it.
fn packet(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(from);
    packet.extend(to);
    packet.extend(TEXT);
    let length = u16::try_from(packet.len()).unwrap();
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet
}

fn packet_v6(from: &str, to: &str) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(TEXT.len()).unwrap().to_be_bytes());
    packet.extend([17, 64]);
    for address in [from, to] {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        packet.extend(address.octets());
    }
    packet.extend(TEXT);
    packet
}

fn trio() -> Site {
    let mut site = Site::new(vec![Node::new(1), Node::new(2), Node::new(3)]);
    site.configure();
    site.settle();
    site
}

#[test]
fn packets_go_to_the_node_of_their_pod_and_nobody_reads_them_on_the_way() {
    let mut site = trio();
    let to_two = packet([10, 42, 1, 5], [10, 42, 2, 5]);
    let to_three = packet_v6("fd42:1::5", "fd42:3::5");
    assert!(site.send(1, &to_two));
    assert!(site.send(1, &to_three));
    site.settle();
    assert_eq!(site.node(2).delivered, [to_two]);
    assert_eq!(site.node(3).delivered, [to_three]);
    // To nobody's pod.
    for nowhere in [
        packet([10, 42, 1, 5], [10, 42, 4, 5]),
        packet([10, 42, 1, 5], [10, 41, 255, 255]),
        packet([10, 42, 1, 5], [8, 8, 8, 8]),
        packet_v6("fd42:1::5", "fd42:4::5"),
        Vec::new(),
        vec![0x45, 0],
    ] {
        assert!(!site.send(1, &nowhere));
    }
    let has_text = |datagram: &Vec<u8>| datagram.windows(TEXT.len()).any(|part| part == TEXT);
    assert!(!site.seen.iter().any(has_text));
}

#[test]
fn a_packet_from_an_address_that_is_not_its_nodes_is_dropped() {
    let mut site = trio();
    // As node 2 has it, node 1 may send from everywhere; node 3 knows better.
    for forged in [
        packet([10, 42, 2, 5], [10, 42, 3, 5]),
        packet([10, 42, 3, 1], [10, 42, 3, 5]),
        packet([8, 8, 8, 8], [10, 42, 3, 5]),
    ] {
        assert!(site.send(1, &forged));
    }
    site.settle();
    assert!(site.node(3).delivered.is_empty());
    let honest = packet([10, 42, 1, 5], [10, 42, 3, 5]);
    assert!(site.send(1, &honest));
    site.settle();
    assert_eq!(site.node(3).delivered, [honest]);
}

#[test]
fn a_node_that_starts_again_is_understood_at_once() {
    let mut site = trio();
    let there = packet([10, 42, 1, 5], [10, 42, 2, 5]);
    let back = packet([10, 42, 2, 5], [10, 42, 1, 5]);
    site.send(1, &there);
    site.settle();
    // It forgets all sessions, and is told of its peers again.
    let own = site.node(2).own.clone();
    *site.node(2) = Node::with(2, own);
    let peers: Peers = [1, 3]
        .map(|number| (site.node(number).public(), peer(number)))
        .into();
    site.tell(2, &peers);
    site.settle();
    site.send(1, &there);
    site.send(2, &back);
    site.settle();
    assert_eq!(site.node(2).delivered, [there]);
    assert_eq!(site.node(1).delivered, [back]);
}

#[test]
fn what_is_sent_before_the_first_handshake_comes_after_it() {
    let mut site = Site::new(vec![Node::new(1), Node::new(2)]);
    let peers: Peers = [(site.node(2).public(), peer(2))].into();
    site.tell(1, &peers);
    let first = packet([10, 42, 1, 5], [10, 42, 2, 5]);
    // The greeting is under way already: nothing is to be sent for it.
    assert!(!site.send(1, &first));
    // Node 2 does not know node 1 yet, and says nothing.
    site.settle();
    assert_eq!(site.seen.len(), 1);
    site.configure();
    site.settle();
    assert_eq!(site.node(2).delivered, [first]);
}

#[test]
fn an_end_that_moved_is_greeted_there_and_one_that_is_heard_elsewhere_is_answered_there() {
    let mut site = trio();
    let moved = SocketAddr::from(([172, 16, 0, 2], 4000));
    let key = site.node(2).public();
    let mut peers: Peers = [(key, peer(2)), (site.node(3).public(), peer(3))].into();
    // Translated on the way: what node 1 hears is from there.
    let said = packet([10, 42, 2, 5], [10, 42, 1, 5]);
    site.send(2, &said);
    site.wire.back_mut().unwrap().0 = moved;
    site.settle();
    assert_eq!(site.node(1).delivered, [said]);
    assert_eq!(site.node(1).ends.endpoints(), [moved, at(3)].into());
    // The same plan changes nothing of it, nor does what proves nothing.
    site.tell(1, &peers);
    for (kind, bytes) in [
        (4, 3),
        (4, 32),
        (4, 90),
        (1, 148),
        (2, 92),
        (3, 64),
        (0, 32),
        (9, 0),
    ] {
        let elsewhere = SocketAddr::from(([172, 16, 0, 9], 9));
        let mut garbage = vec![0; bytes];
        garbage.iter_mut().take(1).for_each(|first| *first = kind);
        site.put(elsewhere, at(1), &garbage);
    }
    site.settle();
    assert_eq!(site.node(1).ends.endpoints(), [moved, at(3)].into());
    // Another plan does.
    let planned = SocketAddr::from(([10, 99, 0, 77], 51820));
    peers.get_mut(&key).unwrap().endpoint = planned;
    site.tell(1, &peers);
    let (_, to, greeting) = site.wire.back().unwrap();
    assert_eq!((*to, greeting.len()), (planned, 148));
    assert_eq!(site.node(1).ends.endpoints(), [planned, at(3)].into());
}

#[test]
fn a_datagram_that_is_played_again_brings_nothing() {
    let mut site = trio();
    let said = packet([10, 42, 1, 5], [10, 42, 2, 5]);
    site.send(1, &said);
    let (from, to, datagram) = site.wire.back().unwrap().clone();
    site.settle();
    site.put(from, to, &datagram);
    site.settle();
    assert_eq!(site.node(2).delivered, [said]);
}

#[test]
fn a_node_that_is_gone_is_not_heard_and_its_networks_are_free() {
    let mut site = trio();
    let three = site.node(3).public();
    let peers: Peers = [(three, peer(3))].into();
    site.tell(1, &peers);
    site.settle();
    assert!(!site.send(1, &packet([10, 42, 1, 5], [10, 42, 2, 5])));
    assert!(site.send(2, &packet([10, 42, 2, 5], [10, 42, 1, 5])));
    site.settle();
    assert!(site.node(1).delivered.is_empty());
    // The third has its network now, and the gone one's number is no trouble.
    let mut wider = peer(3);
    wider.networks.extend(peer(2).networks);
    site.tell(1, &[(three, wider)].into());
    let said = packet([10, 42, 1, 5], [10, 42, 2, 5]);
    assert!(site.send(1, &said));
    site.settle();
    assert_eq!(site.node(3).delivered, [said]);
}

#[test]
fn a_stranger_gets_no_answer() {
    let mut site = trio();
    let stranger = Node::new(9);
    let target = site.node(1).public();
    site.nodes.push(stranger);
    site.tell(9, &[(target, peer(1))].into());
    let count = site.seen.len();
    site.settle();
    assert_eq!(site.seen.len(), count);
    // Of many, each from another place, some are asked for a proof, and no more are worked on.
    for number in 0..1000u16 {
        let from = SocketAddr::from(([172, 16, 1, 1], number));
        let greeting = site.seen.last().unwrap().clone();
        assert_eq!(greeting.len(), 148);
        site.wire.push_back((from, at(1), greeting));
    }
    site.settle();
    let proofs = site
        .seen
        .iter()
        .filter(|datagram| datagram[0] == 3 && datagram.len() == 64);
    assert!(proofs.count() >= 1000 - 200);
}
