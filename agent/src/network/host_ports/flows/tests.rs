//! Which flows are stale, and a client in the real kernel that keeps its port while pods change.

use super::Stale;
use crate::network::host_ports::{HostPorts, entries};
use crate::network::services::conntrack::{Flow, Target};
use crate::network::table::Table;
use crate::network::testing::{ip_command, isolated_async};
use crate::network::view::Protocol;
use crate::runtime::{HostPort, SandboxId};
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Far more than the kernel takes.
const TRIES: usize = 1200;
const PAUSE: Duration = Duration::from_millis(50);

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

fn target(text: &str) -> Target {
    let (address, port) = text.rsplit_once(':').unwrap();
    Target {
        address: address.parse().unwrap(),
        port: port.parse().unwrap(),
    }
}

fn flow(protocol: Protocol, destination: &str, answers: &str) -> Flow {
    Flow {
        protocol,
        destination: target(destination),
        answers: target(answers),
    }
}

/// What is stale when the ports of the first become those of the second; each a pod's address and
/// its ports.
fn between(before: &[(&str, HostPort)], now: &[(&str, HostPort)]) -> Option<Stale> {
    let entries = |pods: &[(&str, HostPort)]| {
        let ports = HostPorts::default();
        for (address, port) in pods {
            let ports_of_pod = std::slice::from_ref(port);
            let address = address.parse::<IpAddr>().unwrap();
            ports.set(&id(&address.to_string()), address.into(), ports_of_pod);
        }
        let wanted = ports.wanted.borrow().clone();
        entries(&wanted)
    };
    let mut stale = Stale::between(&entries(before), &entries(now))?;
    stale.addresses = ["10.99.0.1".parse().unwrap()].into();
    Some(stale)
}

#[test]
fn flows_that_lead_elsewhere_are_stale_and_no_others() {
    let (old, new) = ("10.42.0.2", "10.42.0.3");
    let of_any = || port("UDP", "", 53);
    let stale = between(&[(old, of_any())], &[(new, of_any())]).unwrap();
    let is_stale = |destination, answers| stale.has(&flow(Protocol::Udp, destination, answers));
    assert!(is_stale("10.99.0.1:53", "10.42.0.2:8080"));
    assert!(is_stale("10.99.0.1:53", "10.99.0.1:53"), "the node itself");
    assert!(!is_stale("10.99.0.1:53", "10.42.0.3:8080"));
    assert!(!is_stale("10.99.0.1:54", "10.42.0.2:8080"));
    assert!(!is_stale("8.8.8.8:53", "8.8.8.8:53"), "the world's");
    assert!(!is_stale("10.43.0.10:53", "10.42.0.9:53"), "a Service's");
    assert!(!stale.has(&flow(Protocol::Sctp, "10.99.0.1:53", "10.42.0.2:8080")));
    assert!(!stale.has(&flow(Protocol::Tcp, "10.99.0.1:53", "10.42.0.2:8080")));
    // Nobody has it any more, and one of one address goes before one of any.
    let stale = between(&[(old, of_any())], &[]).unwrap();
    assert!(stale.has(&flow(Protocol::Udp, "10.99.0.1:53", "10.42.0.2:8080")));
    assert!(!stale.has(&flow(Protocol::Udp, "10.99.0.1:53", "10.99.0.1:53")));
    let of_one = || port("SCTP", "10.99.0.1", 53);
    let any = || port("SCTP", "0.0.0.0", 53);
    let stale = between(&[(old, any())], &[(old, any()), (new, of_one())]).unwrap();
    assert!(stale.has(&flow(Protocol::Sctp, "10.99.0.1:53", "10.42.0.2:8080")));
    assert!(!stale.has(&flow(Protocol::Sctp, "10.99.0.1:53", "10.42.0.3:8080")));
}

#[test]
fn where_no_datagrams_lead_elsewhere_nothing_is_looked_through() {
    let udp = || port("UDP", "", 53);
    let tcp = || port("TCP", "", 80);
    assert!(between(&[], &[("10.42.0.2", tcp())]).is_none());
    assert!(between(&[("10.42.0.2", udp())], &[("10.42.0.2", udp())]).is_none());
    let both = [("10.42.0.2", udp()), ("10.42.0.3", tcp())];
    assert!(between(&both, &both[..1]).is_none());
    assert!(between(&[], &both).is_some());
}

#[test]
fn a_client_over_udp_is_led_to_the_next_pod() {
    isolated_async(|| async {
        for arguments in [
            "link set lo up",
            "link add pods type veth peer name nowhere",
            "link set pods up",
            "addr add 10.99.0.1/24 dev pods",
            "addr add 10.42.0.2/32 dev pods",
            "addr add 10.42.0.3/32 dev pods",
        ] {
            ip_command(arguments);
        }
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
        let ports = Arc::new(HostPorts::default());
        let (running, ending) = (ports.clone(), stop.clone());
        tokio::spawn(async move { running.run(table, ending).await });
        let pod = |address: &str| {
            let pod = UdpSocket::bind((address, 8080)).unwrap();
            pod.set_nonblocking(true).unwrap();
            tokio::net::UdpSocket::from_std(pod).unwrap()
        };
        let (one, next) = (pod("10.42.0.2"), pod("10.42.0.3"));
        let client = UdpSocket::bind("10.99.0.1:0").unwrap();
        let reaches = async |pod: &tokio::net::UdpSocket| {
            for _ in 0..TRIES {
                // What nobody listens for is an error of the next datagram.
                drop(client.send_to(b"?", "10.99.0.1:5353"));
                let mut word = [0; 8];
                let heard = tokio::time::timeout(PAUSE, pod.recv(&mut word));
                if heard.await.is_ok() {
                    return;
                }
            }
            panic!("no datagram comes");
        };
        // The kernel has in mind that it goes to the node.
        drop(client.send_to(b"?", "10.99.0.1:5353"));
        let asked = [port("UDP", "", 5353)];
        let address = |text: &str| text.parse::<IpAddr>().unwrap().into();
        ports.set(&id("one"), address("10.42.0.2"), &asked);
        reaches(&one).await;
        ports.remove(&id("one"));
        ports.set(&id("next"), address("10.42.0.3"), &asked);
        reaches(&next).await;
        stop.cancel();
    });
}
