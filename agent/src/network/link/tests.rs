//! The real kernel, in network namespaces of the test's own.
//!
//! A thread moves into a new namespace and stands for the node; the pods' namespaces are pinned
//! by threads that wait.

use super::{BRIDGE, Links};
use crate::network::subnet::Subnet;
use nix::sched::{CloneFlags, unshare};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// Runs `work` in a fresh network namespace. Needs root, as the agent does.
fn isolated<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
        work()
    });
    thread.join().unwrap()
}

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
        tell.send(PathBuf::from(format!("/proc/self/task/{id}/ns/net")))
            .unwrap();
        if wait.recv().is_err() {
            return;
        }
        let listener = TcpListener::bind("0.0.0.0:80").unwrap();
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

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

fn fetch(address: IpAddr) -> String {
    let address = SocketAddr::new(address, 80);
    // The guest may not listen yet.
    let deadline = std::iter::repeat_n((), 200);
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
            let bridge = links.make_bridge(subnet).await.unwrap();
            // Twice: a crash may have come in between.
            for _ in 0..2 {
                links
                    .attach(&bridge, "0123456789abcdef", &guest.namespace, address)
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
                    .make_bridge(Subnet::parse(cidr).unwrap())
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
