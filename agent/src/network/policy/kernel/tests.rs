//! The real kernel: a node with pods, whose packets pass or do not.
//!
//! A thread moves into a new network namespace and stands for the node; the pods' namespaces are
//! held by threads that wait.

use super::super::state::tests::{Bench, ip};
use super::*;
use crate::network::bandwidth::Bandwidth;
use crate::network::link::{Given, Links, link_name};
use crate::network::subnet::Subnet;
use crate::network::table::{SERVICES, Table};
use crate::network::testing::{ip_command, isolated_async};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// For what the kernel lets pass: far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// For what it drops.
const SILENCE: Duration = Duration::from_millis(300);

struct Guest {
    namespace: PathBuf,
    address: IpAddr,
    _end: mpsc::SyncSender<()>,
}

/// A namespace that is there as long as the guest.
fn guest(address: IpAddr) -> Guest {
    let (tell, told) = mpsc::sync_channel(1);
    let (end, ended) = mpsc::sync_channel::<()>(1);
    std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("root makes network namespaces");
        let (process, thread) = (std::process::id(), nix::unistd::gettid());
        let path = format!("/proc/{process}/task/{thread}/ns/net");
        tell.send(PathBuf::from(path)).unwrap();
        _ = ended.recv();
    });
    Guest {
        namespace: told.recv().unwrap(),
        address,
        _end: end,
    }
}

fn within<T: Send + 'static>(
    namespace: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let namespace = File::open(namespace).unwrap();
    std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work()
    })
}

/// Gives back what it gets, over TCP and UDP.
fn serve(port: u16) {
    let unspecified = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port));
    let listener = TcpListener::bind(unspecified).unwrap();
    let socket = UdpSocket::bind(unspecified).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() {
                    drop(stream.write_all(&byte));
                }
            });
        }
    });
    std::thread::spawn(move || {
        let mut bytes = [0; 8];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            drop(socket.send_to(&bytes[..count], from));
        }
    });
}

fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"x")?;
    stream.read_exact(&mut [0])
}

fn over_tcp(to: SocketAddr, patience: Duration) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    echo(&mut stream)?;
    Ok(stream)
}

fn over_udp(to: SocketAddr, patience: Duration) -> std::io::Result<()> {
    let unspecified: IpAddr = match to {
        SocketAddr::V4(_) => ip("0.0.0.0"),
        SocketAddr::V6(_) => ip("::"),
    };
    let socket = UdpSocket::bind((unspecified, 0))?;
    socket.set_read_timeout(Some(patience))?;
    socket.send_to(b"x", to)?;
    socket.recv(&mut [0]).map(drop)
}

/// Sends from an address that need not be one of this namespace.
fn say_as(from: IpAddr, to: SocketAddr, what: u32) {
    let family = match from {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, sockopt::IpTransparent, &true).unwrap();
    let address = SockaddrStorage::from(SocketAddr::from((from, 0)));
    bind(socket.as_raw_fd(), &address).unwrap();
    let socket = UdpSocket::from(socket);
    socket.send_to(&what.to_ne_bytes(), to).unwrap();
}

/// Nobody asks whether an address may come from where it does.
fn believe_all(links: &[&str]) {
    for link in links {
        for (setting, value) in [("rp_filter", "0"), ("accept_local", "1")] {
            let path = format!("/proc/sys/net/ipv4/conf/{link}/{setting}");
            std::fs::write(path, value).unwrap();
        }
    }
}

/// Of the family: the network, and what is in it by number.
struct Plan {
    cidr: &'static str,
    prefix: &'static str,
    /// Outside of it.
    service: &'static str,
}

const PLANS: [Plan; 2] = [
    Plan {
        cidr: "10.99.1.0/24",
        prefix: "10.99.1.",
        service: "10.98.0.1",
    },
    Plan {
        cidr: "fd99:1::/112",
        prefix: "fd99:1::",
        service: "fd98::1",
    },
];

struct Site {
    bench: Bench,
    table: Table,
    links: Links,
    guests: Vec<Guest>,
    gateway: IpAddr,
    stop: CancellationToken,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Pods of these labels in the namespace `shop`, each with servers at 80, 81 and 5353.
async fn site(plan: &Plan, labels: &[&str]) -> Site {
    let (table, keeper) = Table::open().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(keeper.run(stop.clone()));
    table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
    let mut site = Site {
        bench: Bench::default(),
        table,
        links: Links::open().unwrap(),
        guests: Vec::new(),
        gateway: ip(&format!("{}1", plan.prefix)),
        stop,
    };
    site.bench.namespace("shop", "tier=back");
    site.write_whole().await;
    let subnet = Subnet::parse(plan.cidr).unwrap();
    let bridge = site.links.make_bridge(subnet.into()).await.unwrap();
    serve(80);
    for (number, labels) in labels.iter().enumerate() {
        let guest = guest(ip(&format!("{}{}", plan.prefix, number + 2)));
        site.set_labels(number, guest.address, labels).await;
        let given = Given {
            addresses: guest.address.into(),
            bandwidth: Bandwidth::default(),
        };
        let id = id(number);
        let attached = site.links.attach(&bridge, &id, &guest.namespace, given);
        attached.await.unwrap();
        let serving = within(&guest.namespace, || {
            ip_command("link set lo up");
            [80, 81, 5353].map(serve)
        });
        serving.join().unwrap();
        site.guests.push(guest);
    }
    site
}

fn id(number: usize) -> String {
    format!("{number}000000000")
}

impl Site {
    async fn write_whole(&mut self) {
        let nft = &self.table.nft;
        let (chains, sets) = (nft.chains().await.unwrap(), nft.sets().await.unwrap());
        let changes = self.bench.state.whole(of_pods(&chains));
        let batch = whole(&changes, &chains, &sets);
        nft.commit(&batch).await.unwrap();
    }

    async fn settle(&mut self) {
        let batch = changes(&self.bench.state.flush());
        self.table.nft.commit(&batch).await.unwrap();
    }

    /// What is stale is deleted by the second.
    async fn sweep(&mut self) {
        for _ in 0..2 {
            let batch = changes(&self.bench.state.sweep());
            self.table.nft.commit(&batch).await.unwrap();
        }
    }

    async fn set_labels(&mut self, number: usize, address: IpAddr, labels: &str) {
        let (link, key) = (link_name(&id(number)), format!("shop/{number}"));
        let address = address.to_string();
        self.bench.here(&link, &key, &address, labels);
        // Of one that was there before, the server tells.
        self.bench.pod(&key, &address, labels);
        self.settle().await;
    }

    async fn policy(&mut self, name: &str, spec: &str) {
        self.bench.policy(&format!("shop/{name}"), spec);
        self.settle().await;
    }

    async fn no_policy(&mut self, name: &str) {
        let key = format!("shop/{name}");
        self.bench.state.set_policy(&key.as_str().into(), None);
        self.settle().await;
    }

    fn socket(&self, number: usize, port: u16) -> SocketAddr {
        (self.guests[number].address, port).into()
    }

    fn tried(&self, from: usize, to: SocketAddr, patience: Duration) -> std::io::Result<TcpStream> {
        let trying = within(&self.guests[from].namespace, move || over_tcp(to, patience));
        trying.join().unwrap()
    }

    #[track_caller]
    fn passes(&self, from: usize, to: SocketAddr) -> TcpStream {
        self.tried(from, to, PATIENCE).unwrap()
    }

    #[track_caller]
    fn dropped(&self, from: usize, to: SocketAddr) {
        let error = self.tried(from, to, SILENCE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }

    fn udp(&self, from: usize, to: SocketAddr, patience: Duration) -> bool {
        let trying = within(&self.guests[from].namespace, move || over_udp(to, patience));
        trying.join().unwrap().is_ok()
    }

    fn listen(&self, at: usize, port: u16) -> UdpSocket {
        let socket = self.socket(at, port);
        let listening = within(&self.guests[at].namespace, move || {
            believe_all(&["all", "eth0"]);
            UdpSocket::bind(socket).unwrap()
        });
        listening.join().unwrap()
    }

    /// Whether a datagram from `from`, with the address of `by`, is heard. One may be lost on a
    /// link that has just come up: it is said again until the patience ends, each call in a word
    /// of its own.
    fn is_heard(
        &self,
        (from, by): (usize, usize),
        to: SocketAddr,
        heard: &UdpSocket,
        patience: Duration,
    ) -> bool {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let by = self.guests[by].address;
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        heard.set_read_timeout(Some(SILENCE)).unwrap();
        let tries = patience.as_millis() / SILENCE.as_millis();
        (0..tries).any(|_| {
            let saying = within(&self.guests[from].namespace, move || say_as(by, to, call));
            saying.join().unwrap();
            let mut word = [0; 4];
            // What another call said may be late.
            while heard.recv(&mut word).is_ok() {
                if u32::from_ne_bytes(word) == call {
                    return true;
                }
            }
            false
        })
    }
}

#[test]
fn ingress_is_what_policies_let_pass() {
    for plan in PLANS {
        isolated_async(move || async move {
            let mut site = site(&plan, &["app=web", "app=job", "app=db"]).await;
            let db = site.socket(2, 80);
            drop(site.passes(0, db));
            let mut old = site.passes(1, db);
            site.policy("deny", "podSelector: { matchLabels: { app: db } }")
                .await;
            site.dropped(0, db);
            assert!(!site.udp(0, site.socket(2, 5353), SILENCE));
            // What is there already goes on; answers to the pod come in; the node is let in.
            echo(&mut old).unwrap();
            drop(site.passes(2, site.socket(0, 80)));
            assert!(site.udp(2, site.socket(0, 5353), PATIENCE));
            over_tcp(db, PATIENCE).unwrap();
            drop(site.passes(2, db));
            drop(site.passes(0, site.socket(1, 80)));

            let spec = "
podSelector: { matchLabels: { app: db } }
ingress: [{ from: [{ podSelector: { matchLabels: { app: web } } }], ports: [{ port: 80 }] }]
";
            site.policy("web", spec).await;
            drop(site.passes(0, db));
            site.dropped(0, site.socket(2, 81));
            site.dropped(1, db);
            assert!(!site.udp(0, site.socket(2, 80), SILENCE));
            let address = site.guests[1].address;
            site.set_labels(1, address, "app=web").await;
            drop(site.passes(1, db));
            site.policy("web", &spec.replace("port: 80", "port: 70, endPort: 81"))
                .await;
            drop(site.passes(1, site.socket(2, 81)));
            site.dropped(1, site.socket(2, 5353));
            site.policy("web", &spec.replace("port: 80", "protocol: UDP"))
                .await;
            assert!(site.udp(1, site.socket(2, 5353), PATIENCE));
            site.dropped(1, db);
            site.no_policy("deny").await;
            site.no_policy("web").await;
            drop(site.passes(0, db));
        });
    }
}

#[test]
fn egress_is_what_policies_let_pass_to_pods_and_to_the_node() {
    for plan in PLANS {
        isolated_async(move || async move {
            let mut site = site(&plan, &["app=web", "app=db,http/TCP/81"]).await;
            let (db, node) = (site.socket(1, 80), SocketAddr::from((site.gateway, 80)));
            drop(site.passes(0, node));
            site.policy(
                "out",
                "{ podSelector: { matchLabels: { app: web } }, policyTypes: [Egress] }",
            )
            .await;
            site.dropped(0, db);
            site.dropped(0, node);
            drop(site.passes(1, site.socket(0, 80)));
            over_tcp(site.socket(0, 80), PATIENCE).unwrap();

            let spec = "
podSelector: { matchLabels: { app: web } }
policyTypes: [Egress]
egress:
- to: [{ podSelector: { matchLabels: { app: db } } }]
  ports: [{ port: http }]
";
            site.policy("out", spec).await;
            drop(site.passes(0, site.socket(1, 81)));
            site.dropped(0, db);
            site.dropped(0, node);
            let (inside, width) = match site.gateway {
                IpAddr::V4(_) => (plan.cidr, 32),
                IpAddr::V6(_) => (plan.cidr, 128),
            };
            let spec = format!(
                "
podSelector: {{ matchLabels: {{ app: web }} }}
policyTypes: [Egress]
egress:
- to: [{{ ipBlock: {{ cidr: '{inside}', except: ['{}/{width}'] }} }}]
",
                db.ip()
            );
            site.policy("out", &spec).await;
            drop(site.passes(0, node));
            site.dropped(0, db);
            site.policy("all", &spec.replace("except", "unknown")).await;
            drop(site.passes(0, db));
        });
    }
}

#[test]
fn a_pod_reaches_itself_and_nobody_by_the_address_of_another() {
    for plan in PLANS {
        isolated_async(move || async move {
            let mut site = site(&plan, &["app=web", "app=db"]).await;
            believe_all(&["all", &link_name(&id(0)), &link_name(&id(1))]);
            // As a Service would, of which the first one is the endpoint.
            let (web, service) = (site.guests[0].address, ip(plan.service));
            let to_web = Rule::new(SERVICES)
                .is(Field::Destination(Family::of(service)), service)
                .dnat(web, None, nft::Nat::default());
            let mut batch = Batch::new();
            batch.add_rule(&to_web);
            site.table.nft.commit(&batch).await.unwrap();
            let (at_web, at_db) = (site.listen(0, 6000), site.listen(1, 6000));
            let (db, service) = (site.socket(1, 6000), SocketAddr::from((service, 6000)));
            // Without policies and with one.
            for _ in 0..2 {
                assert!(site.is_heard((0, 0), service, &at_web, PATIENCE));
                assert!(!site.is_heard((0, 1), service, &at_web, SILENCE));
                assert!(!site.is_heard((0, 1), db, &at_db, SILENCE));
                site.policy(
                    "deny",
                    "{ podSelector: {}, policyTypes: [Ingress, Egress] }",
                )
                .await;
            }
        });
    }
}

/// Nobody on its link is told who the other is: what both ask and say is let pass.
#[test]
fn a_pod_finds_the_node_on_its_link_by_its_own_addresses() {
    for plan in PLANS {
        isolated_async(move || async move {
            let site = site(&plan, &["app=web"]).await;
            let gateway = site.gateway;
            let (link, hardware) = (link_name(&id(0)), "eth0");
            let node = link_local(&link);
            let asking = within(&site.guests[0].namespace, move || {
                if gateway.is_ipv4() {
                    ip_command(&format!("neigh del {gateway} dev {hardware}"));
                    drop(over_tcp((gateway, 80).into(), PATIENCE).unwrap());
                }
                let index = nix::net::if_::if_nametoindex(hardware).unwrap();
                let node = std::net::SocketAddrV6::new(node, 80, 0, index);
                // The kernel looks for a second whether someone else has the pod's address.
                let tries = std::iter::repeat_with(|| over_udp(node.into(), SILENCE));
                let mut tries = tries.take(100);
                assert!(tries.any(|tried| {
                    if tried.is_err() {
                        std::thread::park_timeout(Duration::from_millis(50));
                    }
                    tried.is_ok()
                }));
            });
            asking.join().unwrap();
        });
    }
}

/// The kernel gives it to the link a moment after it is up.
fn link_local(link: &str) -> std::net::Ipv6Addr {
    let find = || {
        let all = nix::ifaddrs::getifaddrs().unwrap();
        let mut of_link = all.filter(|found| found.interface_name == link);
        of_link.find_map(|found| Some(found.address?.as_sockaddr_in6()?.ip()))
    };
    let tries = (0..200).find_map(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        find()
    });
    tries.unwrap()
}

#[test]
fn all_of_it_can_be_written_over_what_is_there() {
    isolated_async(move || async move {
        let mut site = site(&PLANS[0], &["app=web", "app=db"]).await;
        let db = site.socket(1, 80);
        let spec = "
podSelector: { matchLabels: { app: db } }
ingress:
- from: [{ ipBlock: { cidr: 10.0.0.0/8, except: [10.99.0.0/16] } }, { podSelector: { matchLabels: { app: other } } }]
";
        site.policy("in", spec).await;
        for _ in 0..2 {
            site.write_whole().await;
            site.dropped(0, db);
        }
        // Another version's sets, and chains that nobody knows.
        let mut batch = Batch::new();
        batch.add_chain(&nft::Chain::plain("pol-77"));
        for chain in of_pods(&site.table.nft.chains().await.unwrap()) {
            batch.flush_chain(&chain_name(chain));
        }
        batch.delete_set(Lookup::Blocks.name(Family::Ip4));
        batch.add_set(&Set::new(Lookup::Blocks.name(Family::Ip4), &[Kind::Ip4]));
        site.table.nft.commit(&batch).await.unwrap();
        site.write_whole().await;
        site.dropped(0, db);
        assert!(site.bench.state.has_stale());
        site.sweep().await;
        let left: Vec<u32> = of_pods(&site.table.nft.chains().await.unwrap()).collect();
        assert_eq!(left, [1]);
        let address = site.guests[0].address;
        site.set_labels(0, address, "app=other").await;
        drop(site.passes(0, db));
        // Nothing of it is left without policies and pods.
        site.no_policy("in").await;
        site.sweep().await;
        for set in site.table.nft.sets().await.unwrap() {
            let elements = site.table.nft.elements(&set).await.unwrap();
            assert!(elements.is_empty(), "{}", set.name);
        }
        assert_eq!(of_pods(&site.table.nft.chains().await.unwrap()).count(), 0);
    });
}
