//! What the kernel makes of each rule is what it made of the same rule of `nft` 1.0.6, whose bytes
//! are in golden.txt: chain, the rule in `nft`'s words, and the kernel's dump of its expressions.
//! Registers of targets were moved there to where they are here.

use super::super::datum::Datum;
use super::super::field::{CT_DNAT, CT_ESTABLISHED, CT_RELATED, FIB_LOCAL};
use super::super::wire::Attributes;
use super::super::{Batch, Chain, ChainType, Family, Field, Hook, Kind, Nft, Set, dump};
use super::{Mark, Nat, Part, Reject, Remember, Rule, Target, Test, Verdict};
use crate::network::testing::isolated_async;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const GOLDEN: &str = include_str!("golden.txt");
const RANDOM_FULLY: Nat = Nat {
    random_fully: true,
    persistent: false,
};

fn v4(text: &str) -> Datum {
    Datum::Ip4(text.parse().unwrap())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn a() -> Rule {
    Rule::new("a")
}

fn of_addresses() -> Vec<(&'static str, Rule)> {
    let source = Field::Source(Family::Ip4);
    let socket = [source, Field::Protocol, Field::DestinationPort];
    let frontend = [
        Field::Destination(Family::Ip4),
        Field::Protocol,
        Field::DestinationPort,
    ];
    vec![
        (
            "ip saddr 10.1.2.3 accept",
            a().is(source, v4("10.1.2.3")).accept(),
        ),
        (
            "ip6 daddr fd00::1 drop",
            a().is(
                Field::Destination(Family::Ip6),
                Datum::Ip6("fd00::1".parse().unwrap()),
            )
            .drop(),
        ),
        (
            "iifname \"coracle0\" ip saddr & 255.255.0.0 == 10.42.0.0 accept",
            a().is(Field::InputLink, Datum::Interface("coracle0".to_owned()))
                .in_network(source, Test::Is, ip("10.42.7.0"), 16)
                .accept(),
        ),
        (
            "ip saddr . meta l4proto . th dport @s4 accept",
            a().in_set(socket, "s4").accept(),
        ),
        (
            "ip daddr != @i4 accept",
            a().not_in_set([Field::Destination(Family::Ip4)], "i4")
                .accept(),
        ),
        (
            "ip daddr . meta l4proto . th dport vmap @vm",
            a().verdict_map(frontend, "vm"),
        ),
        (
            "ip saddr != 10.0.0.0/9 accept",
            a().in_network(source, Test::IsNot, ip("10.0.0.0"), 9)
                .accept(),
        ),
        (
            "ip6 saddr fd00::/52 accept",
            a().in_network(Field::Source(Family::Ip6), Test::Is, ip("fd00::"), 52)
                .accept(),
        ),
        (
            "ct original ip daddr 10.0.0.1 accept",
            a().is(Field::OriginalDestination(Family::Ip4), v4("10.0.0.1"))
                .accept(),
        ),
    ]
}

fn of_packets() -> Vec<(&'static str, Rule)> {
    vec![
        (
            "meta l4proto 6 th dport 80 goto target",
            a().is(Field::Protocol, Datum::Protocol(6))
                .is(Field::DestinationPort, Datum::Port(80))
                .goto("target"),
        ),
        (
            "meta mark & 0x4000 != 0 return",
            a().has_bits(Field::Mark, 0x4000).verdict(&Verdict::Return),
        ),
        (
            "meta nfproto ipv4 jump target",
            a().family(Family::Ip4).family(Family::Ip4).jump("target"),
        ),
        (
            "iifname \"cveth*\" accept",
            a().link_starts_with(Field::InputLink, "cveth").accept(),
        ),
        (
            "fib daddr type local accept",
            a().is(Field::DestinationType, Datum::Number(FIB_LOCAL))
                .accept(),
        ),
        (
            "fib saddr . iif oif 0 drop",
            a().is(Field::WayBack, Datum::Number(0)).drop(),
        ),
        (
            "ct state established,related accept",
            a().has_bits(Field::ConnectionState, CT_ESTABLISHED | CT_RELATED)
                .accept(),
        ),
        (
            "ct status dnat accept",
            a().has_bits(Field::ConnectionStatus, CT_DNAT).accept(),
        ),
        (
            "ct direction 0 accept",
            a().is(Field::ConnectionDirection, Datum::Protocol(0))
                .accept(),
        ),
        (
            "meta l4proto tcp ct original proto-dst 80 accept",
            a().is(Field::Protocol, Datum::Protocol(6))
                .is(Field::OriginalDestinationPort, Datum::Port(80))
                .accept(),
        ),
        (
            "th dport >= 80 accept",
            a().test(Field::DestinationPort, Test::AtLeast, &Datum::Port(80))
                .accept(),
        ),
    ]
}

fn of_deeds() -> Vec<(&'static str, Rule)> {
    vec![
        (
            "limit rate 10/second burst 5 packets accept",
            a().limit(10, 5).accept(),
        ),
        ("counter", a().counter()),
        (
            "meta mark set meta mark & 0xffffbfff | 0x4000",
            a().set_mark(Mark::Packet, 0x4000, 0x4000),
        ),
        (
            "ct mark set ct mark & 0xfffffff0 | 0x3",
            a().set_mark(Mark::Connection, 0xf, 3),
        ),
        (
            "reject with icmpx type port-unreachable",
            a().reject(Reject::PortUnreachable),
        ),
        (
            "meta l4proto tcp reject with tcp reset",
            a().is(Field::Protocol, Datum::Protocol(6))
                .reject(Reject::TcpReset),
        ),
    ]
}

fn of_translations() -> Vec<(&'static str, Rule)> {
    let (pre, post) = (|| Rule::new("pre"), || Rule::new("post"));
    let is = |rule: Rule, number| rule.is(Field::Protocol, Datum::Protocol(number));
    let seen = Remember {
        with_target: false,
        timeout: Some(Duration::from_secs(60)),
    };
    vec![
        (
            "meta l4proto tcp dnat ip to numgen random mod 3 offset 2 map @m",
            is(pre(), 6)
                .random_target("m", 3, 2)
                .dnat_to_target(Target::Socket(Family::Ip4), Nat::default()),
        ),
        (
            "meta l4proto udp redirect to :53",
            is(pre(), 17).redirect(Some(53), Nat::default()),
        ),
        ("masquerade fully-random", post().masquerade(RANDOM_FULLY)),
        ("masquerade", post().masquerade(Nat::default())),
        (
            "snat ip to 192.0.2.1",
            post().snat(ip("192.0.2.1"), Nat::default()),
        ),
        (
            "update @seen { ip saddr timeout 60s }",
            a().remember([Field::Source(Family::Ip4)], "seen", seen),
        ),
    ]
}

/// What the rules refer to.
fn stage() -> Batch {
    let frontend = [Kind::Ip4, Kind::Protocol, Kind::Port];
    let socket = [Kind::Ip4, Kind::Port];
    let mut batch = Batch::new();
    batch.add_table();
    for name in ["a", "target"] {
        batch.add_chain(&Chain::plain(name));
    }
    batch.add_chain(&Chain::base("pre", ChainType::Nat, Hook::Prerouting, -100));
    batch.add_chain(&Chain::base("post", ChainType::Nat, Hook::Postrouting, 100));
    batch.add_set(&Set::new("s4", &frontend));
    batch.add_set(&Set::new("i4", &[Kind::Ip4]).intervals());
    batch.add_set(&Set::map("m", &[Kind::Number], &socket));
    batch.add_set(&Set::verdict_map("vm", &frontend));
    let lists = [Kind::Number, Kind::Number, Kind::Number];
    batch.add_set(&Set::map("lists", &lists, &socket));
    batch.add_set(&Set::new("members", &[Kind::Number, Kind::Ip4, Kind::Port]));
    let kept = Set::map("kept", &[Kind::Number, Kind::Ip4], &socket);
    batch.add_set(&kept.timeout(Some(Duration::from_secs(10))).dynamic(100));
    let seen = Set::new("seen", &[Kind::Ip4]).timeout(None).dynamic(100);
    batch.add_set(&seen);
    batch
}

async fn dumped(nft: &Nft) -> Vec<(String, String)> {
    let all = nft.dump(dump::GET_RULE, |writer| writer.text(1, "coracle"));
    let all = all.await.unwrap();
    let of = |body: &[u8]| {
        let attributes = Attributes(body.get(4..)?);
        let expressions = attributes.get(4).unwrap_or_default();
        Some((attributes.text(2)?, hex::encode(expressions)))
    };
    all.iter().filter_map(|(_, body)| of(body)).collect()
}

#[test]
fn the_kernel_has_the_rules_of_nft() {
    let golden: BTreeMap<&str, (&str, &str)> = GOLDEN
        .lines()
        .map(|line| {
            let (chain, rest) = line.split_once('|').unwrap();
            let (text, bytes) = rest.rsplit_once('|').unwrap();
            (text, (chain, bytes))
        })
        .collect();
    let cases = [of_addresses(), of_packets(), of_deeds(), of_translations()].concat();
    assert_eq!(cases.len(), golden.len());
    let found = isolated_async(|| async {
        let nft = Nft::open().unwrap();
        nft.commit(&stage()).await.unwrap();
        let mut found = Vec::new();
        for (text, rule) in cases {
            let mut batch = Batch::new();
            for chain in ["a", "pre", "post"] {
                batch.flush_chain(chain);
            }
            batch.add_rule(&rule);
            nft.commit(&batch)
                .await
                .unwrap_or_else(|error| panic!("{text}: {error:?}"));
            let [rule] = &dumped(&nft).await[..] else {
                panic!("one rule");
            };
            found.push((text, rule.1.clone()));
        }
        found
    });
    for (text, bytes) in found {
        let (_, expected) = golden
            .get(text)
            .unwrap_or_else(|| panic!("no golden {text}"));
        assert_eq!(&bytes, expected, "{text}");
    }
}

/// Keys that `nft` has no words for are taken by the kernel too.
#[test]
fn the_kernel_takes_keys_of_constants_chance_and_targets() {
    isolated_async(|| async {
        let nft = Nft::open().unwrap();
        let mut batch = stage();
        let list = |number| Part::Constant(Datum::Number(number));
        let chance = Part::Random {
            modulus: 5,
            offset: 0,
        };
        let to = Target::Socket(Family::Ip4);
        let client = [list(9), Part::Field(Field::Source(Family::Ip4))];
        let member = [
            list(7),
            Part::TargetAddress(Family::Ip4),
            Part::TargetPort(Family::Ip4),
        ];
        let with_target = Remember {
            with_target: true,
            timeout: None,
        };
        batch.add_rule(
            &Rule::new("pre")
                .find_target(client.clone(), "kept")
                .in_set(member, "members")
                .dnat_to_target(to, Nat::default()),
        );
        batch.add_rule(
            &Rule::new("pre")
                .family(Family::Ip4)
                .find_target([list(1), list(7), chance], "lists")
                .remember(client, "kept", with_target)
                .dnat_to_target(to, RANDOM_FULLY)
                .comment("by chance"),
        );
        batch.add_rule(&Rule::new("pre").dnat(ip("10.1.1.1"), Some(8080), Nat::default()));
        batch.add_rule(&Rule::new("pre").dnat(ip("fd00::1"), Some(80), RANDOM_FULLY));
        nft.commit(&batch).await.unwrap();
        let rules = nft.rules(Some("pre")).await.unwrap();
        let comments: Vec<_> = rules.iter().map(|rule| rule.comment.as_deref()).collect();
        assert_eq!(comments, [None, Some("by chance"), None, None]);
    });
}

#[test]
fn a_long_comment_is_cut_between_characters() {
    let rule = a().comment(&"ö".repeat(100));
    assert_eq!(rule.comment.unwrap().len(), 126);
}

#[test]
fn networks_are_masked() {
    let masked = |base, prefix| super::encode::masked(base, prefix);
    let of = |address: Ipv4Addr| address.octets().to_vec();
    let (mask, base) = masked(ip("10.255.1.2"), 9);
    assert_eq!(mask, of(Ipv4Addr::new(255, 128, 0, 0)));
    assert_eq!(base, of(Ipv4Addr::new(10, 128, 0, 0)));
    let (mask, base) = masked(ip("fd00:ffff::"), 20);
    let of = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets().to_vec();
    assert_eq!((mask, base), (of("ffff:f000::"), of("fd00:f000::")));
}
