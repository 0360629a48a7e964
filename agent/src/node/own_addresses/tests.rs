//! When a node takes another address, and a machine that loses one.

use super::{Known, OwnAddresses, next};
use crate::network::testing::{ip_command, isolated_async};
use std::net::IpAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Far more than it takes.
const WAIT: Duration = Duration::from_secs(60);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn routed(text: &str) -> Known {
    Known {
        address: address(text),
        is_makeshift: false,
    }
}

fn makeshift(text: &str) -> Known {
    Known {
        is_makeshift: true,
        ..routed(text)
    }
}

/// Where the machine has `here`, a route leads by one, and another is at hand.
fn found(known: Known, here: &[Known], by_route: Option<Known>, any: Option<Known>) -> Known {
    let is_here = |address| here.iter().any(|one| one.address == address);
    let address = |known: Option<Known>| known.map(|known| known.address);
    next(known, is_here, || address(by_route), || address(any))
}

#[test]
fn an_address_is_kept_while_the_machine_has_it() {
    let (own, other) = (routed("10.99.0.2"), routed("10.99.0.9"));
    assert_eq!(found(own, &[own], Some(other), Some(other)), own);
    assert_eq!(found(own, &[other], Some(other), None), other);
    // A machine between two addresses: not that of just any link.
    assert_eq!(found(own, &[], None, Some(other)), own);
}

#[test]
fn one_at_hand_is_kept_until_there_is_a_route() {
    let (bridge, other) = (makeshift("172.17.0.1"), routed("10.99.0.9"));
    let loopback = makeshift("127.0.0.1");
    assert_eq!(found(loopback, &[loopback], None, None), loopback);
    assert_eq!(found(loopback, &[loopback], None, Some(bridge)), bridge);
    assert_eq!(
        found(loopback, &[loopback], Some(other), Some(bridge)),
        other
    );
    assert_eq!(found(bridge, &[bridge, other], None, Some(other)), bridge);
    assert_eq!(found(bridge, &[], None, Some(other)), bridge);
    assert_eq!(found(bridge, &[bridge, other], Some(other), None), other);
    // Which it may lead by.
    let same = routed("172.17.0.1");
    assert_eq!(found(bridge, &[bridge], Some(same), None), same);
    assert_eq!(found(same, &[same, other], Some(other), None), same);
}

#[test]
fn what_is_set_is_not_followed() {
    let set = [address("fd99::1"), address("10.99.0.1")];
    let own = OwnAddresses::find(set.into_iter().collect(), None);
    assert_eq!(own.all().to_string(), "fd99::1,10.99.0.1");
    assert_eq!(own.first(), set[0]);
    assert!(own.search.is_none());
}

#[test]
fn a_machine_that_loses_its_address_has_the_next() {
    isolated_async(|| async {
        for arguments in [
            "link set lo up",
            "link add segment type veth peer name nowhere",
            "link set segment up",
            "link set nowhere up",
            "addr add 10.99.0.2/24 dev segment",
        ] {
            ip_command(arguments);
        }
        let server = "10.99.0.1:6443".parse().unwrap();
        let own = OwnAddresses::find(Default::default(), Some(server));
        assert_eq!(own.first(), address("10.99.0.2"));
        let stop = CancellationToken::new();
        let mut told = own.subscribe();
        tokio::spawn(own.clone().follow(stop.clone()));
        // It has looked once and waits for a word of the kernel.
        tokio::task::yield_now().await;
        ip_command("addr del 10.99.0.2/24 dev segment");
        ip_command("addr add 10.99.0.9/24 dev segment");
        let next = address("10.99.0.9");
        let heard = told.wait_for(|all| all.first() == Some(next));
        tokio::time::timeout(WAIT, heard).await.unwrap().unwrap();
        stop.cancel();
    });
}

#[test]
fn a_machine_that_gets_its_first_route_is_known_by_it() {
    isolated_async(|| async {
        for arguments in [
            "link set lo up",
            "link add docker0 type bridge",
            "link set docker0 up",
            "addr add 172.17.0.1/16 dev docker0",
            "link add segment type veth peer name nowhere",
            "link set segment up",
            "link set nowhere up",
        ] {
            ip_command(arguments);
        }
        let server = "10.99.0.1:6443".parse().unwrap();
        let own = OwnAddresses::find(Default::default(), Some(server));
        assert_eq!(own.first(), address("172.17.0.1"));
        let stop = CancellationToken::new();
        let mut told = own.subscribe();
        tokio::spawn(own.clone().follow(stop.clone()));
        tokio::task::yield_now().await;
        ip_command("addr add 10.99.0.2/24 dev segment");
        let next = address("10.99.0.2");
        let heard = told.wait_for(|all| all.first() == Some(next));
        tokio::time::timeout(WAIT, heard).await.unwrap().unwrap();
        stop.cancel();
    });
}
