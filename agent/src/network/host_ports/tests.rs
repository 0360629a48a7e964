//! Which elements pods ask for, and what a change of them costs.

use super::{HostPort, HostPorts, Known, SandboxId, entries, plan};
use crate::families::Families;
use crate::network::nft::Nft;
use crate::network::table::Table;
use crate::network::testing::isolated_async;
use std::net::IpAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn id(name: &str) -> SandboxId {
    SandboxId(name.to_owned())
}

fn port(protocol: &str, host_ip: &str, host_port: i32) -> HostPort {
    HostPort {
        protocol: protocol.to_owned(),
        container_port: 8080,
        host_port,
        host_ip: host_ip.to_owned(),
    }
}

fn at(text: &str) -> Families<IpAddr> {
    let words = text.split(' ');
    words.map(|word| word.parse().unwrap()).collect()
}

/// The sets of all entries, and how many there are.
fn sets(ports: &HostPorts) -> Vec<&'static str> {
    let wanted = ports.wanted.borrow().clone();
    entries(&wanted)
        .into_iter()
        .map(|entry| entry.set)
        .collect()
}

#[test]
fn a_port_is_of_any_address_or_of_one() {
    let ports = HostPorts::default();
    let asked = [
        port("TCP", "", 80),
        port("UDP", "0.0.0.0", 80),
        port("SCTP", "10.99.0.1", 80),
        port("TCP", "fd00::1", 80),
        port("", "::", 81),
        port("GRE", "", 82),
        port("TCP", "", 70_000),
    ];
    ports.set(&id("a"), at("10.42.0.2"), &asked);
    assert_eq!(
        sets(&ports),
        [
            "host-port-hairpins-4",
            "host-ports-4",
            "host-ports-4",
            "host-ports-at-4"
        ]
    );
    ports.set(&id("b"), at("fd42::2"), &asked[3..5]);
    assert_eq!(
        sets(&ports)[4..],
        ["host-ports-6", "host-ports-at-4", "host-ports-at-6"]
    );
}

#[test]
fn a_pod_of_both_families_has_its_ports_in_both() {
    let ports = HostPorts::default();
    let asked = [port("TCP", "", 80), port("TCP", "0.0.0.0", 81)];
    ports.set(&id("a"), at("10.42.0.2 fd42::2"), &asked);
    assert_eq!(
        sets(&ports),
        [
            "host-port-hairpins-4",
            "host-port-hairpins-6",
            "host-ports-4",
            "host-ports-4",
            "host-ports-6"
        ]
    );
}

#[test]
fn of_two_pods_the_later_has_the_port_and_the_other_gets_it_back() {
    let ports = HostPorts::default();
    let asked = [port("TCP", "", 80)];
    let target = |ports: &HostPorts| {
        let all = entries(&ports.wanted.borrow());
        let of_map = all.into_iter().find(|entry| entry.set == "host-ports-4");
        format!("{:?}", of_map.unwrap().element.value)
    };
    ports.set(&id("old"), at("10.42.0.2"), &asked);
    ports.set(&id("new"), at("10.42.0.3"), &asked);
    assert!(target(&ports).contains("10.42.0.3"));
    ports.remove(&id("new"));
    assert!(target(&ports).contains("10.42.0.2"));
}

#[test]
fn a_change_costs_what_changed() {
    let ports = HostPorts::default();
    let known = |ports: &HostPorts, epoch| Known {
        epoch,
        is_complete: true,
        entries: entries(&ports.wanted.borrow()),
        ..Known::default()
    };
    for number in 0..100 {
        let address = at(&format!("10.42.0.{}", number + 2));
        ports.set(
            &id(&number.to_string()),
            address,
            &[port("TCP", "", 8000 + number)],
        );
    }
    let before = known(&ports, 1);
    let all = plan(&Known::default(), &before).byte_count();
    ports.remove(&id("7"));
    let after = known(&ports, 1);
    let change = plan(&before, &after).byte_count();
    assert!(change * 20 < all, "{change} of {all} bytes");
    assert!(plan(&after, &known(&ports, 1)).is_empty());
    assert!(plan(&after, &known(&ports, 2)).byte_count() > change * 10);
}

async fn wait_for(nft: &Nft, set: &str, count: usize) {
    // For a minute at least.
    for _ in 0..6000 {
        let sets = nft.sets().await.unwrap();
        if let Some(set) = sets.iter().find(|found| found.name == set)
            && nft.elements(set).await.unwrap().len() == count
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{count} elements in {set}");
}

#[test]
fn the_kernel_follows_and_a_restart_sweeps_what_is_of_no_pod() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        let nft = table.nft.clone();
        let begin = || {
            let ports = Arc::new(HostPorts::default());
            let (running, table, stop) = (ports.clone(), table.clone(), stop.child_token());
            let ending = stop.clone();
            tokio::spawn(async move { running.run(table, stop).await });
            (ports, ending)
        };
        let (ports, ending) = begin();
        ports.complete();
        let address = at("10.42.0.2");
        ports.set(
            &id("a"),
            address,
            &[port("TCP", "", 80), port("UDP", "", 53)],
        );
        wait_for(&nft, "host-ports-4", 2).await;
        ending.cancel();
        // The next agent: what it has not heard of yet stays, until it has heard of all.
        let (ports, _) = begin();
        ports.set(&id("b"), at("10.42.0.3"), &[port("TCP", "", 81)]);
        wait_for(&nft, "host-ports-4", 3).await;
        ports.complete();
        wait_for(&nft, "host-ports-4", 1).await;
        stop.cancel();
    });
}
