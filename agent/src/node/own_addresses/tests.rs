//! When a node takes another address, and a machine that loses one.

use super::{OwnAddresses, next};
use crate::network::testing::isolated_async;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Far more than it takes.
const WAIT: Duration = Duration::from_secs(20);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_address_is_kept_while_the_machine_has_it() {
    let (own, other) = (address("10.99.0.2"), address("10.99.0.9"));
    let found = |current, here: &[IpAddr], routed: Option<IpAddr>, any: Option<IpAddr>| {
        next(current, |one| here.contains(&one), || routed, || any)
    };
    assert_eq!(found(own, &[own], Some(other), Some(other)), None);
    assert_eq!(found(own, &[other], Some(other), None), Some(other));
    // A machine between two addresses: not that of just any link.
    assert_eq!(found(own, &[], None, Some(other)), None);
    let loopback = address("127.0.0.1");
    assert_eq!(found(loopback, &[loopback], None, Some(other)), Some(other));
    assert_eq!(found(loopback, &[loopback], None, None), None);
}

#[test]
fn what_is_set_is_not_followed() {
    let set = [address("fd99::1"), address("10.99.0.1")];
    let own = OwnAddresses::find(set.into_iter().collect(), None);
    assert_eq!(own.all().to_string(), "fd99::1,10.99.0.1");
    assert_eq!(own.first(), set[0]);
    assert!(own.search.is_none());
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
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
            ip(arguments);
        }
        let server = "10.99.0.1:6443".parse().unwrap();
        let own = OwnAddresses::find(Default::default(), Some(server));
        assert_eq!(own.first(), address("10.99.0.2"));
        let stop = CancellationToken::new();
        let mut told = own.subscribe();
        tokio::spawn(own.clone().follow(stop.clone()));
        // It has looked once and waits for a word of the kernel.
        tokio::task::yield_now().await;
        ip("addr del 10.99.0.2/24 dev segment");
        ip("addr add 10.99.0.9/24 dev segment");
        let next = address("10.99.0.9");
        let heard = told.wait_for(|all| all.first() == Some(next));
        tokio::time::timeout(WAIT, heard).await.unwrap().unwrap();
        stop.cancel();
    });
}
