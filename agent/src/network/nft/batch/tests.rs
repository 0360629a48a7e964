//! Frames and numbers of a batch, without a kernel.

use super::super::wire::{ERROR, HEADER_BYTES, messages};
use super::super::{Chain, ChainType, Datum, Element, Hook, Kind, Set, Verdict};
use super::{Batch, DELETE_ELEMENTS, ELEMENT_BYTES_MAX, NEW_CHAIN, NEW_ELEMENTS, NEW_SET};
use crate::network::subnet::Subnet;
use std::net::Ipv4Addr;
use std::time::Duration;

fn address(number: u32) -> Element {
    Element::new([Datum::Ip4(Ipv4Addr::from(number))])
}

#[test]
fn a_batch_has_a_frame_and_asks_for_one_answer() {
    let mut batch = Batch::new();
    batch.add_chain(&Chain::plain("a"));
    batch.add_set(&Set::new("s", &[Kind::Ip4]));
    let sealed = batch.sealed(7);
    let all: Vec<_> = messages(&sealed).collect();
    let kinds: Vec<_> = all.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [16, 10 << 8 | NEW_CHAIN, 10 << 8 | NEW_SET, 17]);
    assert!(all.iter().all(|message| message.kind != ERROR));
    let sequences: Vec<_> = all.iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, [7, 8, 9, 10]);
    let asked: Vec<_> = all.iter().map(|message| message.flags & 4 != 0).collect();
    assert_eq!(asked, [false, false, true, false]);
}

/// Behind the netlink header. Seen by `strace -e trace=sendmsg -e write=all nft -f …` (1.0.6), less
/// words for itself in the user data of sets, the number of a set of the same batch in messages of
/// elements, and the 0 that `nft` puts before
/// the first range. An element has the number 1 in its list here, as the kernel does not look at it.
#[test]
fn the_bytes_are_those_of_nft() {
    let v4 = |text: &str| Datum::Ip4(text.parse().unwrap());
    let frontend = [Kind::Ip4, Kind::Protocol, Kind::Port];
    let mut batch = Batch::new();
    batch.add_table();
    batch.add_chain(&Chain::plain("target"));
    batch.add_chain(&Chain::base("pre", ChainType::Nat, Hook::Prerouting, -100));
    batch.add_set(&Set::new("s4", &frontend));
    let key = [v4("10.96.0.1"), Datum::Protocol(6), Datum::Port(443)];
    batch.add_elements("s4", [Element::new(key)]);
    batch.add_set(&Set::verdict_map("vm", &[Kind::Ip4]));
    let goto = Verdict::Goto("target".to_owned());
    batch.add_elements("vm", [Element::new([v4("10.0.0.1")]).verdict(goto)]);
    batch.add_set(&Set::new("i4", &[Kind::Ip4]).intervals());
    let network = Subnet::parse("10.0.0.0/24").unwrap();
    batch.add_elements("i4", [Element::range(network.into())]);
    let hour = Duration::from_secs(3600);
    batch.add_set(&Set::new("t4", &[Kind::Ip4]).timeout(Some(hour)));
    let short = Element::new([v4("10.0.0.1")]).timeout(Duration::from_secs(5));
    batch.add_elements("t4", [short]);
    batch.add_set(&Set::new("b", &[Kind::Ip4, Kind::Port]).intervals());
    let block = Element::new([v4("10.0.0.0"), Datum::Port(80)]);
    batch.add_elements("b", [block.until([v4("10.0.0.255"), Datum::Port(90)])]);
    let expected: Vec<&str> = include_str!("golden.txt").lines().collect();
    assert_eq!(batch.message_count(), expected.len());
    for (index, expected) in expected.into_iter().enumerate() {
        let bytes = batch.message_bytes(index);
        let words = super::super::dump::words(bytes);
        assert_eq!(hex::encode(&bytes[HEADER_BYTES..]), expected, "{words}");
    }
}

#[test]
fn many_elements_are_in_several_messages() {
    let mut batch = Batch::new();
    batch.add_elements("s", (0..10_000).map(address));
    let count = batch.message_count();
    assert!(count > 1);
    for index in 0..count {
        assert!(batch.message_bytes(index).len() < ELEMENT_BYTES_MAX + 256);
    }
    let of = |index| {
        messages(batch.message_bytes(index))
            .next()
            .unwrap()
            .number()
    };
    assert!((0..count).all(|index| of(index) == Some(NEW_ELEMENTS)));
}

#[test]
fn no_elements_are_no_message_but_a_flush_is() {
    let mut batch = Batch::new();
    batch.delete_elements("s", []);
    assert!(batch.is_empty());
    batch.flush_set("s");
    let bytes = batch.message_bytes(0);
    assert_eq!(
        messages(bytes).next().unwrap().number(),
        Some(DELETE_ELEMENTS)
    );
}

#[test]
fn one_batch_follows_another() {
    let mut first = Batch::new();
    first.add_chain(&Chain::plain("a"));
    let mut second = Batch::new();
    second.add_chain(&Chain::plain("b"));
    first.append(&second);
    assert_eq!(first.message_count(), 2);
    assert_eq!(first.message_bytes(1), second.message_bytes(0));
}
