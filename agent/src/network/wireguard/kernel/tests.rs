//! What is written for the kernel, byte by byte, as linux/wireguard.h has it, and read from it.

use super::{Change, Found, basics, changes, peer_changes};
use crate::network::subnet::Subnet;
use crate::network::wireguard::key::{KeyPair, PublicKey};
use crate::network::wireguard::{Peer, Peers};

fn key(byte: u8) -> PublicKey {
    PublicKey([byte; 32])
}

fn peer(endpoint: &str, networks: &[&str]) -> Peer {
    Peer {
        endpoint: endpoint.parse().unwrap(),
        networks: networks
            .iter()
            .map(|text| Subnet::parse(text).unwrap())
            .collect(),
    }
}

/// An attribute, padded.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | 0x8000, &parts.concat())
}

const SET_DEVICE: [u8; 4] = [1, 1, 0, 0];

#[test]
fn the_device_has_its_key_and_port() {
    let own = KeyPair::new();
    let expected = [
        SET_DEVICE.to_vec(),
        attribute(1, &7u32.to_ne_bytes()),
        attribute(3, &own.secret.to_bytes()),
        attribute(6, &51820u16.to_ne_bytes()),
    ];
    assert_eq!(basics(7, &own, 51820), expected.concat());
}

#[test]
fn peers_are_set_with_their_networks_alone_or_removed() {
    let set = peer("10.99.0.2:51820", &["10.42.1.0/24", "fd42:1::/64"]);
    let six = peer("[fd99::3]:4000", &[]);
    let changes = [
        Change::Remove(key(1)),
        Change::Set(key(2), &set),
        Change::Set(key(3), &six),
    ];
    let family = |number: u16| number.to_ne_bytes();
    let mut v4 = family(2).to_vec();
    v4.extend([0xca, 0x6c, 10, 99, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut v6 = family(10).to_vec();
    v6.extend([0x0f, 0xa0, 0, 0, 0, 0]);
    v6.extend([0xfd, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    v6.extend([0; 4]);
    let network_v4 = [
        attribute(1, &family(2)),
        attribute(2, &[10, 42, 1, 0]),
        attribute(3, &[24]),
    ];
    let network_v6 = [
        attribute(1, &family(10)),
        attribute(2, &[0xfd, 0x42, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        attribute(3, &[64]),
    ];
    let removed = [attribute(1, &[1; 32]), attribute(3, &1u32.to_ne_bytes())];
    let with = |key: u8, endpoint: &[u8], networks: &[Vec<u8>]| {
        nested(
            0,
            &[
                attribute(1, &[key; 32]),
                attribute(3, &2u32.to_ne_bytes()),
                attribute(4, endpoint),
                attribute(5, &25u16.to_ne_bytes()),
                nested(9, networks),
            ],
        )
    };
    let networks = [nested(0, &network_v4), nested(0, &network_v6)];
    let peers = [
        nested(0, &removed),
        with(2, &v4, &networks),
        with(3, &v6, &[]),
    ];
    let expected = [
        SET_DEVICE.to_vec(),
        attribute(1, &7u32.to_ne_bytes()),
        nested(8, &peers),
    ];
    assert_eq!(peer_changes(7, &changes), expected.concat());
}

#[test]
fn only_what_changed_is_told_and_who_goes_goes_first() {
    let one = peer("10.99.0.1:51820", &["10.42.1.0/24"]);
    let two = peer("10.99.0.2:51820", &["10.42.2.0/24"]);
    let three = peer("10.99.0.3:51820", &["10.42.1.0/24"]);
    let moved = peer("10.99.0.9:51820", &["10.42.2.0/24"]);
    let from: Peers = [(key(1), one.clone()), (key(2), two.clone())].into();
    let to: Peers = [(key(2), moved.clone()), (key(3), three.clone())].into();
    let expected = [
        Change::Remove(key(1)),
        Change::Set(key(2), &moved),
        Change::Set(key(3), &three),
    ];
    assert_eq!(changes(&from, &found(&from), &to), expected);
    assert_eq!(changes(&from, &found(&from), &from), []);
    // After a start nothing was told: what is there may be reached elsewhere.
    let all = [Change::Set(key(1), &one), Change::Set(key(2), &two)];
    assert_eq!(changes(&Peers::new(), &found(&from), &from), all);
}

fn found(peers: &Peers) -> Found {
    let peers = peers.iter();
    let peers = peers.map(|(key, peer)| (*key, peer.networks.iter().copied().collect()));
    Found {
        peers: peers.collect(),
        ..Found::default()
    }
}

#[test]
fn what_somebody_changed_by_hand_is_told_again() {
    let one = peer("10.99.0.1:51820", &["10.42.1.0/24", "fd42:1::/64"]);
    let two = peer("10.99.0.2:51820", &["10.42.2.0/24"]);
    let told: Peers = [(key(1), one.clone()), (key(2), two.clone())].into();
    let of = |peers: &[(u8, &Peer)]| {
        let peers = peers
            .iter()
            .map(|(byte, peer)| (key(*byte), Peer::clone(peer)));
        found(&peers.collect())
    };
    let removed = changes(&told, &of(&[(2, &two)]), &told);
    assert_eq!(removed, [Change::Set(key(1), &one)]);
    let less = peer("10.99.0.1:51820", &["10.42.1.0/24"]);
    let narrowed = changes(&told, &of(&[(1, &less), (2, &two)]), &told);
    assert_eq!(narrowed, [Change::Set(key(1), &one)]);
    let added = changes(&told, &of(&[(1, &one), (2, &two), (9, &two)]), &told);
    assert_eq!(added, [Change::Remove(key(9))]);
    // It has learned where one is.
    let elsewhere = peer("192.0.2.9:4000", &["10.42.2.0/24"]);
    assert_eq!(
        changes(&told, &of(&[(1, &one), (2, &elsewhere)]), &told),
        []
    );
}

#[test]
fn the_device_is_read_from_its_answers_and_garbage_is_not() {
    let network =
        |address: &[u8], prefix: u8| nested(0, &[attribute(2, address), attribute(3, &[prefix])]);
    let peer = |byte: u8, networks: &[Vec<u8>]| {
        let parts = [
            attribute(1, &[byte; 32]),
            attribute(5, &[0, 0]),
            nested(9, networks),
        ];
        nested(0, &parts)
    };
    let six = [0xfd, 0x42, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let first = [
        vec![0, 1, 0, 0],
        attribute(1, &7u32.to_ne_bytes()),
        attribute(4, &[8; 32]),
        attribute(6, &51820u16.to_ne_bytes()),
        nested(8, &[peer(1, &[]), peer(2, &[network(&[10, 42, 2, 0], 24)])]),
    ];
    let second = [
        vec![0, 1, 0, 0],
        nested(8, &[peer(2, &[network(&six, 64)])]),
    ];
    let mut found = Found::default();
    found.read(&first.concat());
    found.read(&second.concat());
    let subnet = |text: &str| Subnet::parse(text).unwrap();
    let of_two = [subnet("10.42.2.0/24"), subnet("fd42:1::/64")];
    let expected = Found {
        key: Some(key(8)),
        port: Some(51820),
        peers: [(key(1), [].into()), (key(2), of_two.into())].into(),
    };
    assert_eq!(found, expected);
    let short = [
        vec![0, 1, 0, 0],
        nested(8, &[nested(0, &[attribute(1, &[1; 31])])]),
    ];
    for garbage in [&short.concat()[..], &[], &[0, 1, 0, 0, 255, 255, 8, 128]] {
        let mut found = Found::default();
        found.read(garbage);
        assert_eq!(found, Found::default());
    }
}
