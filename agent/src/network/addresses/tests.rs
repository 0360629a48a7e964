//! Addresses are given once, kept across restarts and taken back.

use super::super::subnet::Subnet;
use super::{AddressError, Addresses};
use crate::families::Families;
use crate::runtime::SandboxId;
use std::collections::BTreeSet;

fn id(name: &str) -> SandboxId {
    SandboxId(name.to_owned())
}

#[test]
fn a_small_network_is_used_up_and_freed_again() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    let subnet = Subnet::parse("10.42.3.0/29").unwrap().into();
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
    let subnet = Subnet::parse("10.42.3.0/24").unwrap().into();
    let first = addresses.allocate(&id("a"), subnet).unwrap();
    addresses.release(&id("a")).unwrap();
    assert_ne!(addresses.allocate(&id("b"), subnet).unwrap(), first);
}

#[test]
fn a_restart_keeps_what_is_in_use_and_takes_back_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let subnet = Subnet::parse("fd00:1::/64").unwrap().into();
    let kept = {
        let addresses = Addresses::open(directory.path().to_owned()).unwrap();
        addresses.allocate(&id("lost"), subnet).unwrap();
        addresses.allocate(&id("kept"), subnet).unwrap()
    };
    assert_eq!(kept.to_string(), "fd00:1::3");
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    addresses.reclaim(&BTreeSet::from([id("kept")])).unwrap();
    assert!(addresses.of(&id("lost")).is_empty());
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

#[test]
fn a_pod_has_an_address_of_each_network() {
    let directory = tempfile::tempdir().unwrap();
    let networks = |all: &[&str]| -> Families<Subnet> {
        all.iter().map(|one| Subnet::parse(one).unwrap()).collect()
    };
    let addresses = Addresses::open(directory.path().to_owned()).unwrap();
    let both = networks(&["fd00:1::/64", "10.42.3.0/24"]);
    let given = addresses.allocate(&id("a"), both).unwrap();
    assert_eq!(given.to_string(), "fd00:1::2,10.42.3.2");
    assert_eq!(addresses.allocate(&id("a"), both).unwrap(), given);
    let next = addresses.allocate(&id("b"), both).unwrap();
    assert_eq!(next.to_string(), "fd00:1::3,10.42.3.3");
    // One that has an address of one family alone gets the other beside it.
    let one = addresses.allocate(&id("c"), networks(&["10.42.3.0/24"]));
    assert_eq!(one.unwrap().to_string(), "10.42.3.4");
    let more = addresses.allocate(&id("c"), both).unwrap();
    assert_eq!(more.to_string(), "fd00:1::4,10.42.3.4");
    let again = Addresses::open(directory.path().to_owned()).unwrap();
    assert_eq!(again.of(&id("a")).to_string(), "10.42.3.2,fd00:1::2");
    again.release(&id("a")).unwrap();
    assert!(again.of(&id("a")).is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
}
