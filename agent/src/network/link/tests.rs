//! The real kernel, in network namespaces of the test's own.
//!
//! A thread moves into a new namespace and stands for the node; the pods' namespaces are pinned
//! by threads that wait.

use super::{BRIDGE, Given, Links};
use crate::families::Families;
use crate::network::bandwidth::Bandwidth;
use crate::network::subnet::Subnet;
use crate::network::testing::{block_on, ip_command, isolated};
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::LinkUnspec;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// High: the test only looks whether the kernel takes them.
const LIMITS: Bandwidth = Bandwidth {
    ingress: Some(10_000_000_000),
    egress: Some(1_250_000),
};

/// A thread in a namespace of its own that answers one connection on port 80.
struct Guest {
    namespace: PathBuf,
    go: mpsc::SyncSender<()>,
    thread: std::thread::JoinHandle<()>,
}

fn guest() -> Guest {
    let (tell, told) = mpsc::sync_channel(1);
    let (go, wait) = mpsc::sync_channel::<()>(1);
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
        let id = nix::unistd::gettid();
        let process = std::process::id();
        tell.send(PathBuf::from(format!("/proc/{process}/task/{id}/ns/net")))
            .unwrap();
        if wait.recv().is_err() {
            return;
        }
        let listener = TcpListener::bind("[::]:80").unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"hello").unwrap();
    });
    let namespace = told.recv().unwrap();
    Guest {
        namespace,
        go,
        thread,
    }
}

fn fetch(address: IpAddr) -> String {
    let address = SocketAddr::new(address, 80);
    // The guest may not listen yet.
    let deadline = std::iter::repeat_n((), 3000);
    for () in deadline {
        if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            return text;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("{address} does not answer");
}

#[test]
fn the_node_reaches_its_pods_and_all_is_taken_away() {
    let text = isolated(|| {
        let guest = guest();
        let address: IpAddr = "10.99.1.2".parse().unwrap();
        block_on(async {
            let links = Links::open().unwrap();
            let subnet = Subnet::parse("10.99.1.0/24").unwrap();
            let bridge = links.make_bridge(subnet.into()).await.unwrap();
            // Twice: a crash may have come in between.
            let given = Given {
                addresses: address.into(),
                bandwidth: LIMITS,
            };
            for _ in 0..2 {
                links
                    .attach(&bridge, "0123456789abcdef", &guest.namespace, given)
                    .await
                    .unwrap();
            }
            assert_eq!(links.ours().await.unwrap().len(), 2);
        });
        guest.go.send(()).unwrap();
        let text = fetch(address);
        block_on(async {
            let links = Links::open().unwrap();
            links.detach("0123456789abcdef").await.unwrap();
            links.detach("0123456789abcdef").await.unwrap();
            super::remove_all().await.unwrap();
            assert!(links.find(BRIDGE).await.unwrap().is_none());
        });
        guest.thread.join().unwrap();
        text
    });
    assert_eq!(text, "hello");
}

#[test]
fn a_new_pod_cidr_replaces_the_bridges_address() {
    isolated(|| {
        block_on(async {
            let links = Links::open().unwrap();
            for cidr in ["10.99.1.0/24", "10.99.2.0/24", "10.99.2.0/24"] {
                links
                    .make_bridge(Subnet::parse(cidr).unwrap().into())
                    .await
                    .unwrap();
            }
        });
        let addresses: Vec<_> = nix::ifaddrs::getifaddrs()
            .unwrap()
            .filter(|interface| interface.interface_name == BRIDGE)
            .filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip().to_string()))
            .collect();
        assert_eq!(addresses, ["10.99.2.1"]);
    });
}

/// From within a pod.
fn fetch_from(namespace: &Path, address: IpAddr) -> String {
    let namespace = File::open(namespace).unwrap();
    let thread = std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        fetch(address)
    });
    thread.join().unwrap()
}

fn ip_in(namespace: &Path, arguments: &[&str]) -> String {
    let output = Command::new("nsenter")
        .arg(format!("--net={}", namespace.display()))
        .arg("ip")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pods_of_a_node_reach_each_other_by_the_gateway_and_old_ones_are_taken_in() {
    isolated(|| {
        let (one, other) = (guest(), guest());
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        block_on(async {
            let links = Links::open().unwrap();
            let subnet = Subnet::parse("10.99.1.0/24").unwrap();
            let bridge = links.make_bridge(subnet.into()).await.unwrap();
            for (id, guest, at) in [("one", &one, "10.99.1.2"), ("other", &other, "10.99.1.3")] {
                let given = Given {
                    addresses: address(at).into(),
                    bandwidth: Bandwidth::default(),
                };
                let attached = links.attach(&bridge, id, &guest.namespace, given);
                attached.await.unwrap();
            }
            let before = ip_in(&one.namespace, &["route"]);
            assert!(!before.contains("10.99.1.0/24"), "{before}");
            // As an older agent made it.
            let around = [
                "route",
                "add",
                "10.99.1.0/24",
                "dev",
                "eth0",
                "src",
                "10.99.1.2",
            ];
            ip_in(&one.namespace, &around);
            let find = || links.find("cvethone");
            let link = find().await.unwrap().unwrap();
            let bridge_index = links.find(BRIDGE).await.unwrap().unwrap().header.index;
            let join = LinkUnspec::new_with_index(link.header.index).controller(bridge_index);
            links.0.link().set(join.build()).execute().await.unwrap();
            assert!(super::pod::is_bridged(&find().await.unwrap().unwrap()));
            for _ in 0..2 {
                let adopted =
                    links.adopt(&bridge, "one", &one.namespace, address("10.99.1.2").into());
                adopted.await.unwrap();
            }
            assert!(!super::pod::is_bridged(&find().await.unwrap().unwrap()));
            assert_eq!(ip_in(&one.namespace, &["route"]), before);
            // A crash came before the node led to it.
            ip_command("route del 10.99.1.2");
            let adopted = links.adopt(&bridge, "one", &one.namespace, address("10.99.1.2").into());
            adopted.await.unwrap();
            // One that has gone meanwhile is no error.
            let adopted = links.adopt(&bridge, "gone", &one.namespace, address("10.99.1.9").into());
            adopted.await.unwrap();
        });
        other.go.send(()).unwrap();
        assert_eq!(fetch_from(&one.namespace, address("10.99.1.3")), "hello");
        other.thread.join().unwrap();
        drop(one.go);
        one.thread.join().unwrap();
    });
}

#[test]
fn pods_reach_each_other_and_the_node_by_both_families() {
    isolated(|| {
        let families = |text: &str| -> Families<IpAddr> {
            let words = text.split(' ');
            words.map(|word| word.parse().unwrap()).collect()
        };
        let pods = ["fd99::2 10.99.1.2", "fd99::3 10.99.1.3"].map(families);
        for asked in pods[1].iter() {
            let (one, other) = (guest(), guest());
            block_on(async {
                let links = Links::open().unwrap();
                let subnets = ["fd99::/64", "10.99.1.0/24"];
                let subnets = subnets.map(|text| Subnet::parse(text).unwrap());
                let bridge = links.make_bridge(subnets.into_iter().collect());
                let bridge = bridge.await.unwrap();
                for (id, guest, addresses) in [("a", &one, pods[0]), ("b", &other, pods[1])] {
                    let bandwidth = Bandwidth::default();
                    let given = Given {
                        addresses,
                        bandwidth,
                    };
                    let attached = links.attach(&bridge, id, &guest.namespace, given);
                    attached.await.unwrap();
                    let adopted = links.adopt(&bridge, id, &guest.namespace, addresses);
                    adopted.await.unwrap();
                }
            });
            other.go.send(()).unwrap();
            assert_eq!(fetch_from(&one.namespace, asked), "hello");
            other.thread.join().unwrap();
            one.go.send(()).unwrap();
            let of_one = pods[0].of(asked.is_ipv4()).unwrap();
            assert_eq!(fetch(of_one), "hello");
            one.thread.join().unwrap();
        }
        let gateways: BTreeSet<_> = super::machine_addresses()
            .into_iter()
            .filter(|(link, _)| link == BRIDGE)
            .map(|(_, address)| address.to_string())
            .filter(|address| !address.starts_with("fe80"))
            .collect();
        let gateways: Vec<_> = gateways.iter().map(String::as_str).collect();
        assert_eq!(gateways, ["10.99.1.1", "fd99::1"]);
    });
}
