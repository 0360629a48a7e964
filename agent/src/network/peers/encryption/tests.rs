//! From nodes to the peers of the link and to what is guarded.

use super::super::plan::{Own, Segment, plan};
use super::super::record::Peer as Record;
use super::{Nodes, peers, spared};
use crate::network::nft::Range;
use crate::network::subnet::Subnet;
use crate::network::wireguard::{PublicKey, Setting, guarded_ranges};
use std::net::IpAddr;

fn subnet(text: &str) -> Subnet {
    Subnet::parse(text).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn own() -> Own {
    Own {
        name: "own".to_owned(),
        networks: subnet("10.42.0.0/24").into(),
        addresses: address("10.99.0.1").into(),
        segments: vec![Segment {
            subnet: subnet("10.99.0.0/24"),
            link: 2,
            address: "10.99.0.1".parse().unwrap(),
        }],
        servers: ["10.99.0.9".parse().unwrap()].into(),
        key: Some(PublicKey([9; 32])),
    }
}

fn node(name: &str, networks: &[&str], address: &str, key: Option<u8>) -> Record {
    Record {
        name: name.into(),
        networks: networks.iter().map(|one| (*one).into()).collect(),
        addresses: Box::new([address.parse().unwrap()]),
        created: 0,
        key: key.map(|byte| PublicKey([byte; 32]).to_string().into()),
    }
}

fn nodes(all: &[Record]) -> Nodes {
    let all = all.iter();
    all.map(|node| (node.name.clone(), node.clone())).collect()
}

#[test]
fn a_node_is_one_peer_and_may_send_from_its_own_networks_alone() {
    let nodes = nodes(&[
        node("own", &["10.42.0.0/24"], "10.99.0.1", Some(9)),
        node("a", &["10.42.1.0/24", "fd42:1::/64"], "10.99.0.2", Some(1)),
        // Wants what is another's too.
        node(
            "b",
            &["10.42.2.0/24", "10.42.1.0/25"],
            "172.16.0.2",
            Some(2),
        ),
        node("c", &["10.42.3.0/24"], "10.99.0.4", None),
    ]);
    let plan = plan(&own(), &nodes);
    let peers = peers(&plan, 4000);
    let shown: Vec<_> = peers
        .iter()
        .map(|(key, peer)| {
            let networks: Vec<_> = peer.networks.iter().map(Subnet::to_string).collect();
            (key.0[0], peer.endpoint.to_string(), networks.join(" "))
        })
        .collect();
    let expected = [
        (1, "10.99.0.2:4000", "10.42.1.0/24 fd42:1::/64"),
        (2, "172.16.0.2:4000", "10.42.2.0/24"),
    ];
    let expected =
        expected.map(|(key, endpoint, networks)| (key, endpoint.to_owned(), networks.to_owned()));
    assert_eq!(shown, expected);
}

fn guarded(nodes: &Nodes, own: &Own, cluster: &[&str]) -> Vec<String> {
    let setting = Setting {
        port: 51820,
        cluster: cluster.iter().map(|text| subnet(text)).collect(),
    };
    let plan = plan(own, nodes);
    let networks = plan.routes.iter().map(|route| route.network);
    let networks = networks
        .chain(plan.closed.iter().copied())
        .chain(own.networks.iter());
    let ranges = guarded_ranges(networks, &setting.cluster, spared(own, nodes, &setting));
    let show = |range: &Range| format!("{}-{}", range.first, range.last);
    ranges.iter().map(show).collect()
}

#[test]
fn the_whole_network_of_the_cluster_is_guarded_and_who_is_no_pod_is_not() {
    let all = nodes(&[
        node("a", &["10.42.1.0/24"], "10.99.0.2", Some(1)),
        node("c", &["10.50.3.0/24"], "10.99.0.4", None),
    ]);
    let ranges = guarded(&all, &own(), &["10.42.0.0/16"]);
    let whole = ["10.42.0.0-10.42.255.255", "10.50.3.0-10.50.3.255"];
    assert_eq!(ranges, whole);
    // Not known: what nodes have.
    let ranges = guarded(&all, &own(), &[]);
    let known = ["10.42.0.0-10.42.1.255", "10.50.3.0-10.50.3.255"];
    assert_eq!(ranges, known);
    // Nodes within it stay reached.
    let mut own = own();
    let inside = address("10.42.9.1");
    own.addresses = inside.into();
    own.segments[0] = Segment {
        subnet: subnet("10.42.9.0/24"),
        link: 2,
        address: inside,
    };
    let ranges = guarded(&nodes(&[]), &own, &["10.42.0.0/16"]);
    assert_eq!(
        ranges,
        ["10.42.0.0-10.42.8.255", "10.42.10.0-10.42.255.255"]
    );
    // A site's network around all of it takes nothing away.
    own.segments[0].subnet = subnet("10.0.0.0/8");
    own.addresses = address("10.1.0.1").into();
    let ranges = guarded(&nodes(&[]), &own, &["10.42.0.0/16"]);
    assert_eq!(ranges, ["10.42.0.0-10.42.255.255"]);
}

#[test]
fn both_families_are_guarded() {
    let own = Own {
        networks: ["10.42.0.0/24", "fd42:0:0:0::/64"]
            .map(subnet)
            .into_iter()
            .collect(),
        addresses: ["10.99.0.1", "fd99::1"].map(address).into_iter().collect(),
        ..own()
    };
    let both = ["10.42.1.0/24", "fd42:0:0:1::/64"];
    let all = nodes(&[
        node("a", &both, "10.99.0.2", Some(1)),
        node("c", &["fd50::/64"], "10.99.0.3", None),
    ]);
    let ranges = guarded(&all, &own, &["10.42.0.0/16", "fd42::/56"]);
    let whole = [
        "10.42.0.0-10.42.255.255",
        "fd42::-fd42::ff:ffff:ffff:ffff:ffff",
        "fd50::-fd50::ffff:ffff:ffff:ffff",
    ];
    assert_eq!(ranges, whole);
}
