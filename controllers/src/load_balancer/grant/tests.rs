use super::super::balanced::{Balanced, Known};
use super::super::places::Place;
use super::super::pool::AddressPool;
use super::{Stage, grants};
use coracle_client::ObjectKey;
use expect_test::{Expect, expect};
use std::fmt::Write as _;

/// `NAME CREATED PORTS`, then `both`, `local`, `asked=ADDRESS`, `has=ADDRESS`.
fn known(lines: &str) -> Known {
    let mut known = Known {
        server_port: Some(6443),
        ..Known::default()
    };
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let key = ObjectKey::new("default", words.next().unwrap());
        let mut service = Balanced {
            uid: String::new(),
            created: Some(
                format!("2026-01-01T00:00:{}Z", words.next().unwrap())
                    .parse()
                    .unwrap(),
            ),
            ports: Vec::new(),
            wants_ipv4: true,
            wants_ipv6: false,
            is_local: false,
            asked: None,
            addresses: Vec::new(),
        };
        for port in words.next().unwrap().split(',') {
            let (protocol, port) = port.split_once('/').unwrap_or(("TCP", port));
            service
                .ports
                .push((protocol.to_owned(), port.parse().unwrap()));
        }
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("both", _) => service.wants_ipv6 = true,
                ("local", _) => service.is_local = true,
                ("asked", address) => service.asked = Some(address.parse().unwrap()),
                ("has", address) => service.addresses.push(address.parse().unwrap()),
                other => panic!("{other:?}"),
            }
        }
        known.services.insert(key, service);
    }
    known
}

fn check(lines: &str, nodes: &[&str], pool: &[&str], expected: &Expect) {
    check_local(lines, nodes, &[], pool, expected);
}

/// Nodes are named by their place among them, from 0 on.
fn check_local(
    lines: &str,
    nodes: &[&str],
    local: &[(&str, &[&str])],
    pool: &[&str],
    expected: &Expect,
) {
    let places = nodes.iter().enumerate().map(|(number, text)| Place {
        name: number.to_string(),
        addresses: vec![text.parse().unwrap()],
    });
    let local = local.iter().map(|(service, nodes)| {
        let names = nodes.iter().map(|name| (*name).to_owned());
        (ObjectKey::new("default", *service), names.collect())
    });
    let pool: Vec<_> = pool.iter().map(|text| (*text).to_owned()).collect();
    let stage = Stage {
        places: &places.collect::<Vec<_>>(),
        local: &local.collect(),
        pool: &AddressPool::parse(&pool).unwrap(),
    };
    let granted = grants(&known(lines), &stage);
    let mut text = String::new();
    for (key, granted) in granted {
        writeln!(text, "{}: {granted:?}", key.name).unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn a_port_of_the_nodes_belongs_to_the_oldest() {
    let services = "
        late 03 80
        early 01 80,443
        other 02 UDP/80
        server 00 6443
        both 04 8080 both";
    check(
        services,
        &["192.168.1.10", "fd00::10", "192.168.1.11"],
        &[],
        &expect![[r#"
            both: Addresses([192.168.1.10, fd00::10, 192.168.1.11])
            early: Addresses([192.168.1.10, 192.168.1.11])
            late: Taken { by: ObjectKey { namespace: "default", name: "early" } }
            other: Addresses([192.168.1.10, 192.168.1.11])
            server: Taken { by: ObjectKey { namespace: "default", name: "kubernetes" } }
        "#]],
    );
    check(
        services,
        &[],
        &[],
        &expect![[r#"
        both: None
        early: None
        late: Taken { by: ObjectKey { namespace: "default", name: "early" } }
        other: None
        server: Taken { by: ObjectKey { namespace: "default", name: "kubernetes" } }
    "#]],
    );
}

#[test]
fn one_that_is_local_gets_the_nodes_that_have_it() {
    let services = "
        known 01 80 local
        nowhere 02 81 local
        unknown 03 82 local
        taken 04 80 local
        everywhere 05 83";
    check_local(
        services,
        &["192.168.1.10", "192.168.1.11", "192.168.1.12"],
        &[
            ("known", &["2", "0", "elsewhere"]),
            ("nowhere", &[]),
            ("everywhere", &["1"]),
        ],
        &[],
        &expect![[r#"
            everywhere: Addresses([192.168.1.10, 192.168.1.11, 192.168.1.12])
            known: Addresses([192.168.1.10, 192.168.1.12])
            nowhere: None
            taken: Taken { by: ObjectKey { namespace: "default", name: "known" } }
            unknown: Unknown
        "#]],
    );
    check_local(
        services,
        &["192.168.1.10"],
        &[],
        &["10.9.0.0/29"],
        &expect![[r#"
            everywhere: Addresses([10.9.0.4])
            known: Addresses([10.9.0.0])
            nowhere: Addresses([10.9.0.1])
            taken: Addresses([10.9.0.3])
            unknown: Addresses([10.9.0.2])
        "#]],
    );
}

#[test]
fn a_pool_gives_one_each() {
    let services = "
        late 03 80
        early 01 80
        middle 02 6443
        none 04 80";
    check(
        services,
        &["192.168.1.10"],
        &["10.9.0.1-10.9.0.3"],
        &expect![[r#"
            early: Addresses([10.9.0.1])
            late: Addresses([10.9.0.3])
            middle: Addresses([10.9.0.2])
            none: None
        "#]],
    );
    let kept = "
        new 00 80
        has 02 80 has=10.9.0.1
        also 03 80 has=10.9.0.1
        gone 04 80 has=10.8.0.1
        asks 05 80 asked=10.9.0.7
        asks-other 06 80 asked=10.8.0.7
        both 07 80 both";
    check(
        kept,
        &[],
        &["10.9.0.0/29", "fd09::/126"],
        &expect![[r#"
        also: Addresses([10.9.0.2])
        asks: Addresses([10.9.0.7])
        asks-other: None
        both: Addresses([10.9.0.4, fd09::])
        gone: Addresses([10.9.0.3])
        has: Addresses([10.9.0.1])
        new: Addresses([10.9.0.0])
    "#]],
    );
}
