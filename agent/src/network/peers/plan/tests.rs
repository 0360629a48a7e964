//! Ways to other nodes, from a picture of the cluster in words.

use super::super::record::Peer;
use super::{Own, Segment, Way, hardware_address, plan};
use crate::network::subnet::Subnet;
use crate::network::wireguard::PublicKey;
use expect_test::{Expect, expect};
use std::fmt::Write;
use std::net::IpAddr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn own() -> Own {
    Own {
        name: "own".to_owned(),
        networks: Subnet::parse("10.42.0.0/24").unwrap().into(),
        addresses: address("10.99.0.1").into(),
        segments: vec![
            Segment {
                subnet: Subnet::parse("10.99.0.0/24").unwrap(),
                link: 2,
                address: "10.99.0.1".parse().unwrap(),
            },
            Segment {
                subnet: Subnet::parse("fd99::/64").unwrap(),
                link: 2,
                address: "fd99::1".parse().unwrap(),
            },
            Segment {
                subnet: Subnet::parse("192.168.7.0/24").unwrap(),
                link: 3,
                address: "192.168.7.5".parse().unwrap(),
            },
        ],
        servers: ["10.97.0.1".parse().unwrap()].into(),
        key: None,
    }
}

/// As a node has it; what is no number is no key.
fn key(byte: &str) -> String {
    byte.parse().map_or_else(
        |_| byte.to_owned(),
        |byte| PublicKey([byte; 32]).to_string(),
    )
}

/// A node a line: name, podCIDRs and InternalIPs, each joined by commas, how old it is, and the byte
/// that its key is made of.
fn check(own: &Own, nodes: &str, expected: &Expect) {
    let peers = nodes
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let split = |word: &str| -> Vec<String> {
                word.split(',')
                    .filter(|one| *one != "-")
                    .map(str::to_owned)
                    .collect()
            };
            Peer {
                name: words[0].into(),
                networks: split(words[1])
                    .iter()
                    .map(|one| one.as_str().into())
                    .collect(),
                addresses: split(words[2])
                    .iter()
                    .map(|one| one.parse().unwrap())
                    .collect(),
                created: words.get(3).map_or(0, |age| age.parse().unwrap()),
                key: words.get(4).map(|byte| key(byte).into()),
            }
        });
    let nodes = peers.map(|peer| (peer.name.clone(), peer)).collect();
    let plan = plan(own, &nodes);
    let mut text = String::new();
    for route in &plan.routes {
        match route.way {
            Way::Straight { gateway, link } => {
                writeln!(text, "{} via {gateway} link {link}", route.network).unwrap();
            }
            Way::Tunnel(far) => {
                let hardware = hex::encode(far.hardware);
                writeln!(
                    text,
                    "{} tunnel {hardware} at {}",
                    route.network, far.address
                )
                .unwrap();
            }
            Way::Encrypted { key, address } => {
                let (network, key) = (route.network, key.0[0]);
                writeln!(text, "{network} encrypted for {key} at {address}").unwrap();
            }
        }
    }
    for network in &plan.closed {
        writeln!(text, "{network} closed").unwrap();
    }
    for problem in &plan.problems {
        writeln!(text, "! {problem}").unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn a_node_on_a_segment_is_routed_and_another_is_behind_the_tunnel() {
    check(
        &own(),
        "own 10.42.0.0/24 10.99.0.1
         a 10.42.1.0/24 10.99.0.2
         b 10.42.2.0/24 192.168.7.9
         c 10.42.3.0/24 172.16.0.4,192.168.8.1
         new - 10.99.0.5",
        &expect![[r"
            10.42.1.0/24 via 10.99.0.2 link 2
            10.42.2.0/24 via 192.168.7.9 link 3
            10.42.3.0/24 tunnel 0a590a2a0300 at 172.16.0.4
        "]],
    );
}

#[test]
fn both_families_have_their_ways() {
    check(
        &own(),
        "a 10.42.1.0/24,fd42:0:0:1::/64 10.99.0.2,fd99::2
         b 10.42.2.0/24,fd42:0:0:2::/64 10.99.0.3
         c fd42:0:0:3::/64 fd98::1",
        &expect![[r"
            10.42.1.0/24 via 10.99.0.2 link 2
            10.42.2.0/24 via 10.99.0.3 link 2
            fd42:0:0:1::/64 via fd99::2 link 2
            fd42:0:0:2::/64 tunnel 0a590a2a0200 at 10.99.0.3
            ! No route to the pods of node c in fd42:0:0:3::/64: it has no InternalIP that this node could send to
        "]],
    );
}

#[test]
fn a_node_of_both_families_keeps_both_of_its_networks() {
    let networks = ["fd42::/64", "10.42.0.0/24"].map(|text| Subnet::parse(text).unwrap());
    let own = Own {
        networks: networks.into_iter().collect(),
        addresses: ["fd97::1", "172.16.0.1"].map(address).into_iter().collect(),
        ..own()
    };
    // What is beyond the segments is behind the tunnel, whose ends are of IPv4.
    check(
        &own,
        "a fd42:0:0:1::/64,10.42.1.0/24 fd99::2,10.99.0.2
         b fd42:0:0:2::/64,10.42.2.0/24 fd98::3,172.17.0.3
         c fd42::/60,10.42.0.0/23 fd99::4,10.99.0.4
         d 10.42.3.0/24 172.17.0.5
         e fd97::/64,10.42.4.0/24 fd99::5,172.16.0.1",
        &expect![[r#"
            10.42.1.0/24 via 10.99.0.2 link 2
            10.42.2.0/24 tunnel 0a59fd420002 at 172.17.0.3
            10.42.3.0/24 tunnel 0a590a2a0300 at 172.17.0.5
            fd42:0:0:1::/64 via fd99::2 link 2
            fd42:0:0:2::/64 tunnel 0a59fd420002 at 172.17.0.3
            ! No route to the pods of node c: its podCIDR 10.42.0.0/23 overlaps 10.42.0.0/24 of this node
            ! No route to the pods of node c: its podCIDR fd42::/60 overlaps fd42::/64 of this node
            ! No route to the pods of node e: its podCIDR fd97::/64 has the address fd97::1 of a node in it
            ! No route to the pods of node e in 10.42.4.0/24: it has no InternalIP that this node could send to
        "#]],
    );
}

#[test]
fn what_overlaps_is_not_routed_and_the_older_node_keeps_its_own() {
    check(
        &own(),
        "a 10.42.1.0/24 10.99.0.2 20
         b 10.42.1.128/25 10.99.0.3 10
         c 10.42.0.128/25 10.99.0.4
         d 192.168.0.0/16 10.99.0.5
         e 10.99.0.128/25 10.99.0.200
         f nonsense 10.99.0.7
         g 0.0.0.0/0 10.99.0.8",
        &expect![[r#"
            10.42.1.128/25 via 10.99.0.3 link 2
            ! No route to the pods of node f: its podCIDR "nonsense" is no network
            ! No route to the pods of node a: its podCIDR 10.42.1.0/24 overlaps 10.42.1.128/25 of node b
            ! No route to the pods of node c: its podCIDR 10.42.0.128/25 overlaps 10.42.0.0/24 of this node
            ! No route to the pods of node d: its podCIDR 192.168.0.0/16 overlaps 192.168.7.0/24 of this node
            ! No route to the pods of node e: its podCIDR 10.99.0.128/25 has the address 10.99.0.200 of a node in it
            ! No route to the pods of node g: its podCIDR 0.0.0.0/0 has the address 10.99.0.1 of a node in it
        "#]],
    );
}

#[test]
fn a_node_takes_no_route_of_an_older_one_away_by_its_addresses() {
    check(
        &own(),
        "a 10.42.1.0/24 10.99.0.2 10
         b 10.42.2.0/24 10.99.0.3,10.42.1.9 20
         c 10.99.0.3/32 10.99.0.4 30
         d 10.99.0.1/32 10.99.0.5 30
         own 10.42.0.0/24 10.99.0.1,172.16.0.1 40
         e 172.16.0.0/24 10.99.0.6 30",
        &expect![[r"
            10.42.1.0/24 via 10.99.0.2 link 2
            10.42.2.0/24 via 10.99.0.3 link 2
            ! No route to the pods of node c: its podCIDR 10.99.0.3/32 has the address 10.99.0.3 of a node in it
            ! No route to the pods of node d: its podCIDR 10.99.0.1/32 has the address 10.99.0.1 of a node in it
            ! No route to the pods of node e: its podCIDR 172.16.0.0/24 has the address 172.16.0.1 of a node in it
        "]],
    );
}

#[test]
fn no_node_takes_the_way_to_the_api_server() {
    check(
        &own(),
        "a 10.97.0.1/32 10.99.0.2
         b 10.97.0.0/16 10.99.0.3
         c 10.96.0.0/16 10.99.0.4",
        &expect![[r"
            10.96.0.0/16 via 10.99.0.4 link 2
            ! No route to the pods of node a: its podCIDR 10.97.0.1/32 has the address 10.97.0.1 of the API server in it
            ! No route to the pods of node b: its podCIDR 10.97.0.0/16 has the address 10.97.0.1 of the API server in it
        "]],
    );
}

#[test]
fn what_no_other_node_can_have_is_no_way_to_it() {
    check(
        &own(),
        "a 10.42.1.0/24 10.99.0.1
         b 10.42.2.0/24 192.168.7.5,10.99.0.3
         c 10.42.3.0/24 127.0.0.1,0.0.0.0,224.0.0.1,255.255.255.255
         d 10.42.4.0/24 127.0.0.1,172.16.0.4",
        &expect![[r"
            10.42.2.0/24 via 10.99.0.3 link 2
            10.42.4.0/24 tunnel 0a590a2a0400 at 172.16.0.4
            ! No route to the pods of node a in 10.42.1.0/24: it has no InternalIP that this node could send to
            ! No route to the pods of node c in 10.42.3.0/24: it has no InternalIP that this node could send to
        "]],
    );
}

#[test]
fn what_is_refused_gives_no_end_of_the_tunnel() {
    check(
        &own(),
        "a 10.42.1.0/24 172.16.0.1 10
         b 10.42.1.0/24,10.42.2.0/24 172.16.0.2 20
         c a2a:100::/64 172.16.0.3 30
         d 10.42.4.0/24,fd42::/64 172.16.0.4 40
         e a2a::/64 172.16.0.5 50",
        &expect![[r"
            10.42.1.0/24 tunnel 0a590a2a0100 at 172.16.0.1
            10.42.4.0/24 tunnel 0a590a2a0400 at 172.16.0.4
            fd42::/64 tunnel 0a590a2a0400 at 172.16.0.4
            ! No route to the pods of node b: its podCIDR 10.42.1.0/24 overlaps 10.42.1.0/24 of node a
            ! No route to the pods of node b in 10.42.2.0/24: its end of the tunnel is known by its first podCIDR 10.42.1.0/24, which has no route
            ! No route to the pods of node c in a2a:100::/64: its end of the tunnel cannot be told from that of node a
            ! No route to the pods of node e in a2a::/64: its end of the tunnel cannot be told from that of node own
        "]],
    );
}

#[test]
fn pods_over_the_network_of_the_node_are_told_of() {
    let own = Own {
        networks: Subnet::parse("10.99.0.0/16").unwrap().into(),
        ..own()
    };
    check(
        &own,
        "a 10.98.1.0/24 10.99.0.2",
        &expect![[r"
            10.98.1.0/24 via 10.99.0.2 link 2
            ! The podCIDR 10.99.0.0/16 of this node overlaps the network 10.99.0.0/24 that it is on
        "]],
    );
}

#[test]
fn a_network_within_a_large_one_of_the_site_is_routed() {
    let mut own = own();
    own.segments[0].subnet = Subnet::parse("10.0.0.0/8").unwrap();
    check(
        &own,
        "a 10.42.1.0/24 10.99.0.2",
        &expect![[r"
            10.42.1.0/24 via 10.99.0.2 link 2
        "]],
    );
}

#[test]
fn an_end_of_the_tunnel_of_another_family_is_no_way() {
    let own = Own {
        addresses: address("fd99::1").into(),
        ..own()
    };
    check(
        &own,
        "a 10.42.1.0/24 fd98::2,10.98.0.2\nb 10.42.2.0/24 fd98::3",
        &expect![[r#"
            10.42.2.0/24 tunnel 0a590a2a0200 at fd98::3
            ! No route to the pods of node a in 10.42.1.0/24: it has no InternalIP that this node could send to
        "#]],
    );
}

#[test]
fn where_it_is_asked_for_all_ways_are_encrypted_or_closed() {
    let own = Own {
        key: Some(PublicKey([9; 32])),
        ..own()
    };
    check(
        &own,
        "own 10.42.0.0/24 10.99.0.1 0 9
         a 10.42.1.0/24,fd42:1::/64 10.99.0.2,fd99::2 10 1
         b 10.42.2.0/24 172.16.0.4 20 2
         old 10.42.3.0/24 10.99.0.5 30
         damaged 10.42.4.0/24 10.99.0.6 40 AAAA
         thief 10.42.5.0/24 10.99.0.7 50 1
         mirror 10.42.6.0/24 10.99.0.8 60 9
         late 10.42.3.0/25 10.99.0.10 70 3
         six 10.42.7.0/24 fd99::9 80 4",
        &expect![[r#"
            10.42.1.0/24 encrypted for 1 at 10.99.0.2
            10.42.2.0/24 encrypted for 2 at 172.16.0.4
            fd42:1::/64 encrypted for 1 at 10.99.0.2
            10.42.3.0/24 closed
            10.42.4.0/24 closed
            10.42.5.0/24 closed
            10.42.6.0/24 closed
            10.42.7.0/24 closed
            ! No route to the pods of node late: its podCIDR 10.42.3.0/25 overlaps 10.42.3.0/24 of node old
            ! No route to the pods of node six in 10.42.7.0/24: it has no InternalIP that this node could send to
            ! No route to the pods of node damaged in 10.42.4.0/24: traffic between nodes is encrypted, and it has no key of WireGuard
            ! No route to the pods of node old in 10.42.3.0/24: traffic between nodes is encrypted, and it has no key of WireGuard
            ! No route to the pods of node mirror in 10.42.6.0/24: its key of WireGuard is that of node own
            ! No route to the pods of node thief in 10.42.5.0/24: its key of WireGuard is that of node a
        "#]],
    );
}

#[test]
fn hardware_addresses_differ_with_the_networks() {
    let of = |text: &str| hex::encode(hardware_address(Subnet::parse(text).unwrap()));
    assert_eq!(of("10.42.3.0/24"), "0a590a2a0300");
    assert_eq!(of("fd00::/64"), "0a59fd000000");
    assert_eq!(of("fd00:0:0:1::/64"), "0a59fd000001");
    assert_ne!(of("fd00:0:1::/64"), of("fd00:0:0:1::/64"));
}
