//! Routes and the tunnel in the kernel, in network namespaces of the tests' own.

use super::{Encryption, Observed, apply, network, observe, remove, routes};
use crate::families::Families;
use crate::network::link::Links;
use crate::network::peers::plan::{Own, Plan, Problem, plan};
use crate::network::peers::record::Peer;
use crate::network::subnet::Subnet;
use crate::network::testing::isolated_async;
use crate::network::wireguard::PublicKey;
use futures::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::route::RouteAttribute;
use rtnetlink::{LinkBridge, LinkUnspec, RouteMessageBuilder};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

const OWN: &str = "10.99.0.1";

/// A link that stands for the segment, and the pods' bridge.
async fn host() -> Links {
    let links = Links::open().unwrap();
    let handle = links.handle();
    let segment = LinkBridge::new("segment").up().build();
    handle.link().add(segment).execute().await.unwrap();
    let index = index(&links, "segment").await.unwrap();
    for (address, length) in [(OWN, 24), ("fd99::1", 64)] {
        let address: IpAddr = address.parse().unwrap();
        let mut add = handle.address().add(index, address, length);
        if address.is_ipv6() {
            add.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        }
        add.execute().await.unwrap();
    }
    links.make_bridge(networks_of_pods()).await.unwrap();
    links
}

async fn index(links: &Links, name: &str) -> Option<u32> {
    let found = observe(links).await.unwrap();
    let link = found.links.iter().find(|link| {
        link.attributes
            .contains(&LinkAttribute::IfName(name.to_owned()))
    });
    link.map(|link| link.header.index)
}

fn networks_of_pods() -> Families<Subnet> {
    let all = ["10.42.0.0/24", "fd42::/64"];
    all.map(|text| Subnet::parse(text).unwrap())
        .into_iter()
        .collect()
}

fn own(observed: &Observed) -> Own {
    Own {
        name: "own".to_owned(),
        networks: networks_of_pods(),
        addresses: [OWN, "fd99::1"]
            .map(|text| text.parse().unwrap())
            .into_iter()
            .collect(),
        segments: observed.segments(),
        servers: BTreeSet::new(),
        key: None,
    }
}

fn peer(name: &str, network: &str, address: &str) -> Peer {
    Peer {
        name: name.into(),
        networks: network.split(',').map(Into::into).collect(),
        addresses: address.split(',').map(|one| one.parse().unwrap()).collect(),
        created: 0,
        key: None,
    }
}

/// Brings the kernel to these peers: what the pods' MTU is and what could not be done.
async fn reach(links: &Links, peers: &[Peer]) -> (u32, Vec<Problem>) {
    reach_by(links, peers, Encryption::Off).await
}

async fn reach_by(links: &Links, peers: &[Peer], encryption: Encryption) -> (u32, Vec<Problem>) {
    let observed = observe(links).await.unwrap();
    let mut own = own(&observed);
    own.key = matches!(encryption, Encryption::By(_)).then_some(PublicKey([9; 32]));
    let nodes = peers
        .iter()
        .map(|peer| (peer.name.clone(), peer.clone()))
        .collect();
    let plan: Plan = plan(&own, &nodes);
    let mtu = observed.mtu_towards(own.underlay());
    let applied = apply(links, &observed, &own, &plan, mtu, encryption)
        .await
        .unwrap();
    (applied.pod_mtu, applied.problems.into_iter().collect())
}

async fn networks(links: &Links) -> Vec<String> {
    let mut all: Vec<_> = routes(links.handle())
        .await
        .unwrap()
        .iter()
        .map(|route| network(route).unwrap().to_string())
        .collect();
    all.sort();
    all
}

/// All entries of the tunnel's two tables.
async fn behind(links: &Links) -> usize {
    let index = index(links, super::tunnel::VXLAN).await;
    let mut count = 0;
    for family in [AddressFamily::Inet, AddressFamily::Bridge] {
        let found = links
            .handle()
            .neighbours()
            .get()
            .set_address_family(family)
            .execute();
        let all: Vec<_> = found.try_collect().await.unwrap();
        count += all
            .iter()
            .filter(|entry| Some(entry.header.ifindex) == index)
            .count();
    }
    count
}

#[test]
fn without_the_link_that_encrypts_nobody_is_reached_in_another_way() {
    isolated_async(|| async {
        let links = host().await;
        let far = peer("far", "10.42.2.0/24", "172.16.0.2");
        reach(&links, std::slice::from_ref(&far)).await;
        let keyed = Peer {
            key: Some(PublicKey([1; 32]).to_string().into()),
            ..far
        };
        let known = index(&links, "segment").await;
        for (by, expected) in [(None, &[][..]), (known, &["10.42.2.0/24"]), (None, &[])] {
            let reached = reach_by(&links, std::slice::from_ref(&keyed), Encryption::By(by)).await;
            assert_eq!(reached, (1440, vec![]));
            assert_eq!(networks(&links).await, expected);
            assert_eq!(index(&links, super::tunnel::VXLAN).await, None);
        }
    });
}

#[test]
fn routes_and_the_tunnel_follow_the_nodes() {
    isolated_async(|| async {
        let links = host().await;
        let near = peer("near", "10.42.1.0/24", "10.99.0.2");
        let far = peer("far", "10.42.2.0/24", "172.16.0.2");
        let other = peer("other", "10.42.3.0/24", "172.16.0.3");
        for _ in 0..2 {
            let reached = reach(&links, &[near.clone(), far.clone(), other.clone()]).await;
            assert_eq!(reached, (1450, vec![]));
            assert_eq!(
                networks(&links).await,
                ["10.42.1.0/24", "10.42.2.0/24", "10.42.3.0/24"]
            );
            assert_eq!(behind(&links).await, 4);
        }
        let device = index(&links, super::tunnel::VXLAN).await;
        // One moved to another address, one to another network; one is gone.
        let far = peer("far", "10.42.2.0/24", "172.16.0.9");
        let near = peer("near", "10.42.7.0/24", "10.99.0.2");
        reach(&links, &[near.clone(), far]).await;
        assert_eq!(networks(&links).await, ["10.42.2.0/24", "10.42.7.0/24"]);
        assert_eq!(behind(&links).await, 2);
        assert_eq!(index(&links, super::tunnel::VXLAN).await, device);
        assert_eq!(reach(&links, &[near]).await, (1500, vec![]));
        assert_eq!(networks(&links).await, ["10.42.7.0/24"]);
        assert_eq!(index(&links, super::tunnel::VXLAN).await, None);
        remove(&links).await.unwrap();
        assert!(networks(&links).await.is_empty());
    });
}

#[test]
fn both_families_have_routes_and_ends() {
    isolated_async(|| async {
        let links = host().await;
        let near = peer("near", "10.42.1.0/24,fd42:0:0:1::/64", "10.99.0.2,fd99::2");
        let far = peer("far", "10.42.2.0/24,fd42:0:0:2::/64", "172.16.0.2,fd98::2");
        for _ in 0..2 {
            let reached = reach(&links, &[near.clone(), far.clone()]).await;
            assert_eq!(reached, (1450, vec![]));
            assert_eq!(
                networks(&links).await,
                [
                    "10.42.1.0/24",
                    "10.42.2.0/24",
                    "fd42:0:0:1::/64",
                    "fd42:0:0:2::/64"
                ]
            );
        }
        let ways = routes(links.handle()).await.unwrap();
        let gateways: BTreeSet<_> = ways
            .iter()
            .flat_map(|route| &route.attributes)
            .filter_map(|attribute| match attribute {
                RouteAttribute::Gateway(gateway) => super::ip(gateway),
                _ => None,
            })
            .map(|gateway| gateway.to_string())
            .collect();
        assert_eq!(
            gateways.into_iter().collect::<Vec<_>>(),
            ["10.42.2.0", "10.99.0.2", "fd42:0:0:2::", "fd99::2"]
        );
        reach(&links, &[]).await;
        assert!(networks(&links).await.is_empty());
    });
}

#[test]
fn what_went_with_a_link_comes_back() {
    isolated_async(|| async {
        let links = host().await;
        let near = [peer("near", "10.42.1.0/24", "10.99.0.2")];
        reach(&links, &near).await;
        let index = index(&links, "segment").await.unwrap();
        let handle = links.handle();
        let set = |link| handle.link().set(link).execute();
        set(LinkUnspec::new_with_index(index).down().build())
            .await
            .unwrap();
        assert!(networks(&links).await.is_empty());
        set(LinkUnspec::new_with_index(index).up().build())
            .await
            .unwrap();
        reach(&links, &near).await;
        assert_eq!(networks(&links).await, ["10.42.1.0/24"]);
    });
}

#[test]
fn a_route_of_someone_else_is_left_alone_and_told_of() {
    isolated_async(|| async {
        let links = host().await;
        let foreign = RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix("10.42.1.0".parse().unwrap(), 24)
            .gateway("10.99.0.77".parse().unwrap())
            .build();
        links.handle().route().add(foreign).execute().await.unwrap();
        let (_, problems) = reach(&links, &[peer("near", "10.42.1.0/24", "10.99.0.2")]).await;
        let network = Subnet::parse("10.42.1.0/24").unwrap();
        assert_eq!(problems, [Problem::RouteTaken { network }]);
        assert!(networks(&links).await.is_empty());
    });
}

#[test]
fn a_route_that_the_kernel_refuses_is_told_of_and_the_others_are_made() {
    isolated_async(|| async {
        let links = host().await;
        let broadcast = peer("broadcast", "10.42.1.0/24", "10.99.0.255");
        let own = peer("own-again", "10.42.2.0/24", OWN);
        let near = peer("near", "10.42.3.0/24", "10.99.0.2");
        let (mtu, problems) = reach(&links, &[broadcast, own, near]).await;
        assert_eq!(mtu, 1500);
        let [Problem::Refused { network, reason }] = &problems[..] else {
            panic!("{problems:?}");
        };
        assert_eq!(network.to_string(), "10.42.1.0/24");
        assert!(reason.starts_with("Invalid argument"), "{reason}");
        assert_eq!(networks(&links).await, ["10.42.3.0/24"]);
    });
}

#[test]
fn the_pods_own_links_are_no_segment() {
    isolated_async(|| async {
        let links = host().await;
        let segments = observe(&links).await.unwrap().segments();
        let subnets: Vec<_> = segments
            .iter()
            .map(|segment| segment.subnet.to_string())
            .collect();
        assert_eq!(subnets, ["10.99.0.0/24", "fd99::/64"]);
    });
}
