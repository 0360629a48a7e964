//! Addresses are given once, kept across restarts and taken back.

use super::super::subnet::Subnet;
use super::{AddressError, Addresses};
use crate::runtime::SandboxId;
use std::collections::BTreeSet;

fn id(name: &str) -> SandboxId {
    SandboxId(name.to_owned())
}

#[test]
fn a_small_network_is_used_up_and_freed_again() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    let subnet = Subnet::parse("10.42.3.0/29").unwrap();
    let mut given = BTreeSet::new();
    for number in 0..5 {
        given.insert(
            addresses
                .allocate(&id(&number.to_string()), subnet)
                .unwrap()
                .to_string(),
        );
    }
    let expected = [
        "10.42.3.2",
        "10.42.3.3",
        "10.42.3.4",
        "10.42.3.5",
        "10.42.3.6",
    ];
    assert_eq!(
        given.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
    let full = addresses.allocate(&id("more"), subnet);
    assert!(matches!(full, Err(AddressError::Exhausted)));
    addresses.release(&id("2")).unwrap();
    addresses.release(&id("2")).unwrap();
    assert_eq!(
        addresses.allocate(&id("more"), subnet).unwrap().to_string(),
        "10.42.3.4"
    );
}

#[test]
fn a_freed_address_rests_while_others_are_free() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    let subnet = Subnet::parse("10.42.3.0/24").unwrap();
    let first = addresses.allocate(&id("a"), subnet).unwrap();
    addresses.release(&id("a")).unwrap();
    assert_ne!(addresses.allocate(&id("b"), subnet).unwrap(), first);
}

#[test]
fn a_restart_keeps_what_is_in_use_and_takes_back_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let subnet = Subnet::parse("fd00:1::/64").unwrap();
    let kept = {
        let addresses = Addresses::open(directory.path().to_owned()).unwrap();
        addresses.allocate(&id("lost"), subnet).unwrap();
        addresses.allocate(&id("kept"), subnet).unwrap()
    };
    assert_eq!(kept.to_string(), "fd00:1::3");
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    addresses.reclaim(&BTreeSet::from([id("kept")])).unwrap();
    assert_eq!(addresses.of(&id("lost")), None);
    assert_eq!(addresses.allocate(&id("kept"), subnet).unwrap(), kept);
    assert_eq!(
        addresses.allocate(&id("new"), subnet).unwrap().to_string(),
        "fd00:1::2"
    );
}

#[test]
fn a_network_knows_its_own() {
    let subnet = Subnet::parse("10.42.3.77/24").unwrap();
    assert_eq!(subnet.gateway().to_string(), "10.42.3.1");
    assert_eq!(subnet.pod_count(), 253);
    for bad in ["10.42.3.0", "10.42.3.0/33", "x/8", "::/129"] {
        assert_eq!(Subnet::parse(bad), None);
    }
}
