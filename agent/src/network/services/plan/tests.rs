//! A Service and its slices in, what the kernel is to have out.

use super::super::fixtures::{entry, node, show, slice};
use super::plan;
use crate::network::view::{Entry, Key};
use expect_test::{Expect, expect};

fn check_entry(entry: &Entry, expected: &Expect) {
    let key = Key::from("default/web");
    expected.assert_eq(&show(&key, &plan(&key, entry, &node())));
}

/// Two endpoints, one of them on this node.
fn check(service: &str, expected: &Expect) {
    let endpoints = "10.42.0.5 here\n10.42.1.6 there";
    check_entry(
        &entry(service, &[slice("http/tcp/8080", endpoints)]),
        expected,
    );
}

fn check_away(service: &str, expected: &Expect) {
    check_entry(
        &entry(service, &[slice("http/tcp/8080", "10.42.1.6 there")]),
        expected,
    );
}

fn check_alone(service: &str, expected: &Expect) {
    check_entry(&entry(service, &[]), expected);
}

#[test]
fn within_the_cluster() {
    check(
        "ip=10.43.0.1 ports=http/tcp/80",
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        cluster ip 10.43.0.1
        hairpin 10.42.0.5
    "#]],
    );
    check(
        "ip=10.43.0.1 ports=http/tcp/80 internal-local",
        &expect![[r#"
            svc-l4/default/web/tcp/http: to 10.42.0.5:8080
            10.43.0.1 tcp 80 goto svc-l4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
    check_away(
        "ip=10.43.0.1 ports=http/tcp/80 internal-local",
        &expect![[r#"
            closed 10.43.0.1 tcp 80 drop
            cluster ip 10.43.0.1
        "#]],
    );
    check_alone(
        "ip=10.43.0.1 ports=http/tcp/80",
        &expect![[r#"
        closed 10.43.0.1 tcp 80 reject
        cluster ip 10.43.0.1
    "#]],
    );
}

#[test]
fn on_the_nodes_ports() {
    check(
        "ip=10.43.0.1 ports=http/tcp/80/30080",
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
        svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        *4 tcp 30080 goto svc-e4/default/web/tcp/http
        cluster ip 10.43.0.1
        hairpin 10.42.0.5
    "#]],
    );
    check(
        "ip=10.43.0.1 ports=http/tcp/80/30080 external-local",
        &expect![[r#"
            svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
            svc-l4/default/web/tcp/http: to 10.42.0.5:8080
            svc-e4/default/web/tcp/http: goto svc-c4/default/web/tcp/http if from 10.42.0.0/24; masquerade if local; goto svc-c4/default/web/tcp/http if local; goto svc-l4/default/web/tcp/http
            10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
            *4 tcp 30080 goto svc-e4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
    check_away(
        "ip=10.43.0.1 ports=http/tcp/80/30080 external-local",
        &expect![[r#"
            svc-c4/default/web/tcp/http: to 10.42.1.6:8080
            svc-e4/default/web/tcp/http: goto svc-c4/default/web/tcp/http if from 10.42.0.0/24; masquerade if local; goto svc-c4/default/web/tcp/http if local
            10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
            *4 tcp 30080 goto svc-e4/default/web/tcp/http
            closed *4 tcp 30080 drop
            cluster ip 10.43.0.1
        "#]],
    );
    check_alone(
        "ip=10.43.0.1 ports=http/tcp/80/30080 external-local",
        &expect![[r#"
            closed 10.43.0.1 tcp 80 reject
            closed *4 tcp 30080 reject
            cluster ip 10.43.0.1
        "#]],
    );
}

#[test]
fn on_addresses_from_outside() {
    check(
        "ip=10.43.0.1 ports=http/tcp/80 external=1.2.3.4",
        &expect![[r#"
            svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
            svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
            1.2.3.4 tcp 80 goto svc-e4/default/web/tcp/http
            10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
    check_alone(
        "ip=10.43.0.1 ports=http/tcp/80 external=1.2.3.4",
        &expect![[r#"
            closed 1.2.3.4 tcp 80 reject
            closed 10.43.0.1 tcp 80 reject
            cluster ip 10.43.0.1
        "#]],
    );
    let balancer = "ip=10.43.0.1 ports=http/tcp/80/30080 balancer=5.6.7.8";
    check(
        balancer,
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
        svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
        5.6.7.8 tcp 80 goto svc-e4/default/web/tcp/http
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        *4 tcp 30080 goto svc-e4/default/web/tcp/http
        cluster ip 10.43.0.1
        hairpin 10.42.0.5
    "#]],
    );
    check(
        &format!("{balancer} external-local internal-local"),
        &expect![[r#"
            svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
            svc-l4/default/web/tcp/http: to 10.42.0.5:8080
            svc-e4/default/web/tcp/http: goto svc-c4/default/web/tcp/http if from 10.42.0.0/24; masquerade if local; goto svc-c4/default/web/tcp/http if local; goto svc-l4/default/web/tcp/http
            5.6.7.8 tcp 80 goto svc-e4/default/web/tcp/http
            10.43.0.1 tcp 80 goto svc-l4/default/web/tcp/http
            *4 tcp 30080 goto svc-e4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
    check_away(
        &format!("{balancer} external-local"),
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.1.6:8080
        svc-e4/default/web/tcp/http: goto svc-c4/default/web/tcp/http if from 10.42.0.0/24; masquerade if local; goto svc-c4/default/web/tcp/http if local
        5.6.7.8 tcp 80 goto svc-e4/default/web/tcp/http
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        closed 5.6.7.8 tcp 80 drop
        *4 tcp 30080 goto svc-e4/default/web/tcp/http
        closed *4 tcp 30080 drop
        cluster ip 10.43.0.1
    "#]],
    );
}

#[test]
fn for_some_sources_alone() {
    let balancer = "ip=10.43.0.1 ports=http/tcp/80 balancer=5.6.7.8";
    check(
        &format!("{balancer} ranges=10.0.0.0/8,172.16.0.0/12"),
        &expect![[r#"
            svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
            svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
            svc-f4/default/web/tcp/http: return if from 10.0.0.0/8; return if from 172.16.0.0/12; drop
            5.6.7.8 tcp 80 goto svc-e4/default/web/tcp/http
            10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
            guarded 5.6.7.8 tcp 80 goto svc-f4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
    // The node's own address is in one of them.
    check(
        &format!("{balancer} ranges=192.168.0.0/16"),
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.0.5:8080 10.42.1.6:8080
        svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
        svc-f4/default/web/tcp/http: return if from 192.168.0.0/16; return if from 5.6.7.8/32; drop
        5.6.7.8 tcp 80 goto svc-e4/default/web/tcp/http
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        guarded 5.6.7.8 tcp 80 goto svc-f4/default/web/tcp/http
        cluster ip 10.43.0.1
        hairpin 10.42.0.5
    "#]],
    );
    let open = plan_of(&format!("{balancer} ranges=0.0.0.0/0,10.0.0.0/8"));
    assert_eq!(open, plan_of(balancer));
    let other_family = plan_of(&format!("{balancer} ranges=fd00::/8"));
    assert_eq!(other_family, plan_of(balancer));
    // Node ports and external addresses are for everyone.
    let elsewhere = "ip=10.43.0.1 ports=http/tcp/80/30080 external=1.2.3.4";
    let guarded = plan_of(&format!("{elsewhere} ranges=10.0.0.0/8"));
    assert_eq!(guarded, plan_of(elsewhere));
}

fn plan_of(service: &str) -> String {
    let slice = slice("http/tcp/8080", "10.42.0.5 here");
    let key = Key::from("default/web");
    show(&key, &plan(&key, &entry(service, &[slice]), &node()))
}

#[test]
fn clients_that_keep_their_endpoint() {
    check(
        "ip=10.43.0.1 ports=http/tcp/80 affinity=10800",
        &expect![[r#"
            svc-c4/default/web/tcp/http: kept for 10800s of 10.42.0.5:8080 10.42.1.6:8080; forget; keep for 10800s; to 10.42.0.5:8080 10.42.1.6:8080
            10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
            cluster ip 10.43.0.1
            hairpin 10.42.0.5
        "#]],
    );
}

#[test]
fn both_families_and_several_ports() {
    let slices = [
        slice("http/tcp/8080", "10.42.0.5 here"),
        slice("http/tcp/8080", "fd42::5 here"),
        slice("dns/udp/53", "10.42.0.5 here"),
    ];
    let service = "ip=10.43.0.1,fd43::1 ports=http/tcp/80/30080,dns/udp/53/30053 external=fd00::9";
    check_entry(
        &entry(service, &slices),
        &expect![[r#"
        svc-c4/default/web/tcp/http: to 10.42.0.5:8080
        svc-e4/default/web/tcp/http: masquerade; goto svc-c4/default/web/tcp/http
        svc-c4/default/web/udp/dns: to 10.42.0.5:53
        svc-e4/default/web/udp/dns: masquerade; goto svc-c4/default/web/udp/dns
        svc-c6/default/web/tcp/http: to fd42::5:8080
        svc-e6/default/web/tcp/http: masquerade; goto svc-c6/default/web/tcp/http
        10.43.0.1 tcp 80 goto svc-c4/default/web/tcp/http
        10.43.0.1 udp 53 goto svc-c4/default/web/udp/dns
        fd00::9 tcp 80 goto svc-e6/default/web/tcp/http
        fd43::1 tcp 80 goto svc-c6/default/web/tcp/http
        closed fd00::9 udp 53 reject
        closed fd43::1 udp 53 reject
        *4 tcp 30080 goto svc-e4/default/web/tcp/http
        *4 udp 30053 goto svc-e4/default/web/udp/dns
        *6 tcp 30080 goto svc-e6/default/web/tcp/http
        closed *6 udp 30053 reject
        cluster ip 10.43.0.1
        cluster ip fd43::1
        hairpin 10.42.0.5
        hairpin fd42::5
    "#]],
    );
}

#[test]
fn what_is_not_routed_has_nothing() {
    check("ip=10.43.0.1 ports=http/tcp/80 by-others", &expect![[""]]);
    check("ip=10.43.0.1 ports=http/tcp/80 name-only", &expect![[""]]);
    check("headless ports=http/tcp/80", &expect![[""]]);
    check("ports=http/tcp/80", &expect![[""]]);
    let mut orphan = entry("", &[slice("http/tcp/8080", "10.42.0.5")]);
    orphan.service = None;
    check_entry(&orphan, &expect![[""]]);
}

#[test]
fn names_and_numbers_stay_the_same_over_restarts() {
    let key = Key::from("default/web");
    let slice = slice("http/tcp/8080", "10.42.0.5");
    let plan = plan(
        &key,
        &entry("ip=10.43.0.1 ports=http/tcp/80", &[slice]),
        &node(),
    );
    let port = &plan.ports[0];
    assert_eq!(port.cluster.id.0, 15_439_880_891_240_717_770);
    assert_eq!(port.id.affinity(&key).0, 18_341_303_355_064_556_855);
}
