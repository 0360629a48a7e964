//! Endpoints in, the ones that are sent to out.

use super::super::fixtures::{entry, node, slice};
use super::super::steps::{Family, Target};
use super::{Policies, candidates, usable};
use crate::network::view::{Entry, Slice};
use std::sync::Arc;

const BOTH: Policies = Policies {
    cluster: true,
    local: true,
};

fn of(slices: &[Arc<Slice>]) -> Entry {
    entry("ip=10.43.0.1,fd43::1 ports=http/tcp/80", slices)
}

fn shown(targets: &[Target]) -> String {
    let all = targets.iter().map(|target| target.address.to_string());
    all.collect::<Vec<_>>().join(" ")
}

/// "CLUSTER | LOCAL", and a "?" when there is none anywhere.
fn check_with(policies: Policies, entry: &Entry, expected: &str) {
    let service = entry.service.clone().unwrap();
    let candidates = candidates(entry, Family::Ip4, &service.ports[0]);
    let usable = usable(&candidates, policies, &node());
    let none = if usable.has_any { "" } else { "?" };
    let found = format!(
        "{} | {}{none}",
        shown(&usable.cluster),
        shown(&usable.local)
    );
    assert_eq!(found.trim(), expected);
}

fn check(endpoints: &str, expected: &str) {
    check_with(BOTH, &of(&[slice("http/tcp/8080", endpoints)]), expected);
}

#[test]
fn ready_ones_are_used_and_those_that_end_when_no_other_is() {
    check(
        "10.0.0.1 here\n10.0.0.2 there",
        "10.0.0.1 10.0.0.2 | 10.0.0.1",
    );
    check("10.0.0.1 here unready\n10.0.0.2 there", "10.0.0.2 |");
    check(
        "10.0.0.1 here unready terminating\n10.0.0.2 there",
        "10.0.0.2 | 10.0.0.1",
    );
    check(
        "10.0.0.1 here unready terminating\n10.0.0.2 there unready terminating",
        "10.0.0.1 10.0.0.2 | 10.0.0.1",
    );
    check("10.0.0.1 here unready terminating not-serving", "| ?");
    check("10.0.0.1 here unready", "| ?");
    check("", "| ?");
}

#[test]
fn a_policy_that_no_way_has_is_not_looked_at() {
    let entry = of(&[slice("http/tcp/8080", "10.0.0.1 here\n10.0.0.2 there")]);
    let (cluster, local) = (true, false);
    check_with(Policies { cluster, local }, &entry, "10.0.0.1 10.0.0.2 |");
    let (cluster, local) = (false, true);
    check_with(Policies { cluster, local }, &entry, "| 10.0.0.1");
    let away = of(&[slice("http/tcp/8080", "10.0.0.2 there")]);
    check_with(Policies { cluster, local }, &away, "|");
}

#[test]
fn hints_of_zones_count_when_all_have_them_and_one_is_for_here() {
    let near = "10.0.0.1 zones=east\n10.0.0.2 zones=west,east\n10.0.0.3 zones=west";
    check(near, "10.0.0.1 10.0.0.2 |");
    check("10.0.0.1 zones=east\n10.0.0.2", "10.0.0.1 10.0.0.2 |");
    check(
        "10.0.0.1 zones=west\n10.0.0.2 zones=north",
        "10.0.0.1 10.0.0.2 |",
    );
    // Only what is ready is asked.
    check("10.0.0.1 zones=east\n10.0.0.2 unready", "10.0.0.1 |");
    // What ends is used wherever it is.
    check(
        "10.0.0.1 zones=west unready terminating\n10.0.0.2 zones=east unready",
        "10.0.0.1 |",
    );
}

#[test]
fn hints_of_nodes_go_before_those_of_zones() {
    let near = "10.0.0.1 nodes=here zones=east\n10.0.0.2 nodes=there zones=east";
    check(near, "10.0.0.1 |");
    let none_here = "10.0.0.1 nodes=there zones=east\n10.0.0.2 nodes=there zones=west";
    check(none_here, "10.0.0.1 |");
    let not_all = "10.0.0.1 nodes=here\n10.0.0.2 zones=east";
    check(not_all, "10.0.0.1 10.0.0.2 |");
}

#[test]
fn an_address_that_is_there_twice_is_one_endpoint() {
    let old = slice(
        "http/tcp/8080",
        "10.0.0.1 here unready not-serving terminating",
    );
    let new = slice("http/tcp/8080", "10.0.0.1 there");
    for slices in [[old.clone(), new.clone()], [new, old]] {
        check_with(BOTH, &of(&slices), "10.0.0.1 |");
    }
}

#[test]
fn other_ports_protocols_families_and_routers_are_left_out() {
    let mut by_others = Slice::clone(&slice("http/tcp/8080", "10.0.0.5"));
    by_others.is_routed_by_others = true;
    let mut all_ports = Slice::clone(&slice("http/tcp/8080", "10.0.0.6"));
    all_ports.ports[0].port = None;
    let slices = [
        slice("http/tcp/8080", "10.0.0.1"),
        slice("other/tcp/8080", "10.0.0.2"),
        slice("http/udp/8080", "10.0.0.3"),
        slice("http/tcp/8080", "fd42::1"),
        slice("http/tcp/0", "10.0.0.4"),
        Arc::new(by_others),
        Arc::new(all_ports),
    ];
    check_with(BOTH, &of(&slices), "10.0.0.1 |");
}
