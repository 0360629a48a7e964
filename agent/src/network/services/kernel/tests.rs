//! The real kernel: batches are taken in a network namespace of the test's own, and connections
//! are made through them. A thread stands for the node; its endpoints are addresses of its own.

use super::super::clear;
use super::super::conntrack::{self, Served};
use super::super::fixtures::{entry, ip, node, slice};
use super::super::plan::plan;
use super::super::state::{Changes, State};
use super::{changes, of_services, whole, without_rules};
use crate::network::nft::{Batch, Kind, Set};
use crate::network::table::{Keeper, SERVICES, Table};
use crate::network::testing::{self, ip_command};
use crate::network::view::{Entry, Key};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// For what the kernel lets pass: far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// For what it drops.
const SILENCE: Duration = Duration::from_millis(300);

/// Runs `work` in a fresh network namespace.
pub fn isolated<T: Send + 'static>(work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    testing::isolated(|| {
        ip_command("link set lo up");
        ip_command("link add far type veth peer name nowhere");
        ip_command("link set nowhere up");
        ip_command("link set far up");
        ip_command("addr add 10.99.0.1/24 dev far");
        ip_command("-6 addr add fd99::1/64 dev far nodad");
        is_local("fd99::1");
        ip_command("route add default dev far");
        ip_command("-6 route add default dev far");
        testing::block_on(work())
    })
}

/// Waits until packets to the address stay here: the kernel makes that route of IPv6 a moment later.
fn is_local(address: &str) {
    for _ in 0..1000 {
        let mut command = Command::new("ip");
        let output = command.args(["-6", "route", "get", address]).output();
        let output = output.unwrap();
        if output.stdout.starts_with(b"local ") {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("{address} is not local");
}

/// Answers each connection with its own address.
pub fn listen(address: &str) {
    let address = ip(address);
    let family = if address.is_ipv6() { "-6 " } else { "" };
    let (prefix, nodad) = if address.is_ipv6() {
        (128, " nodad")
    } else {
        (32, "")
    };
    ip_command(&format!(
        "{family}addr add {address}/{prefix} dev far{nodad}"
    ));
    if address.is_ipv6() {
        is_local(&address.to_string());
    }
    let listener = TcpListener::bind((address, 8080)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let from = stream.peer_addr().unwrap().ip();
            drop(write!(stream, "{address} {from}"));
        }
    });
}

/// Who answers, and whom it saw.
pub fn try_ask(to: &str, patience: Duration) -> std::io::Result<(IpAddr, IpAddr)> {
    let to: SocketAddr = to.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (answers, from) = text.split_once(' ').expect("an answer");
    Ok((ip(answers), ip(from)))
}

#[track_caller]
pub fn ask(to: &str) -> IpAddr {
    try_ask(to, PATIENCE).unwrap().0
}

#[track_caller]
pub fn refused(to: &str) {
    let error = try_ask(to, PATIENCE).unwrap_err();
    assert_eq!(
        error.kind(),
        std::io::ErrorKind::ConnectionRefused,
        "{error}"
    );
}

#[track_caller]
fn dropped(to: &str) {
    let error = try_ask(to, SILENCE).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
}

fn all_of(to: &str) -> BTreeSet<IpAddr> {
    (0..64).map(|_| ask(to)).collect()
}

fn set(addresses: &[&str]) -> BTreeSet<IpAddr> {
    addresses.iter().map(|address| ip(address)).collect()
}

/// The kernel, with the state that is kept of it.
pub struct Bench {
    pub table: Table,
    pub state: State,
    stop: CancellationToken,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Bench {
    pub async fn new() -> Self {
        let (table, keeper): (Table, Keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
        let mut bench = Self {
            table,
            state: State::default(),
            stop,
        };
        bench.write_whole().await;
        bench
    }

    pub async fn write_whole(&mut self) {
        let nft = &self.table.nft;
        let (chains, sets) = (nft.chains().await.unwrap(), nft.sets().await.unwrap());
        let there: Vec<_> = of_services(&chains).collect();
        let steps = self.state.whole(&there);
        let batch = whole(&node(), &steps, &chains, &sets);
        self.table.nft.commit(&batch).await.unwrap();
    }

    pub async fn update(&mut self, now: &[(Key, Entry)]) {
        let mut gathered = Changes::default();
        for (key, entry) in now {
            self.state
                .update(key, plan(key, entry, &node()), &mut gathered);
        }
        let steps = self.state.steps(gathered);
        self.table.nft.commit(&changes(&steps)).await.unwrap();
    }

    async fn web(&mut self, text: &str, endpoints: &str) {
        let slices = [slice("http/tcp/8080", endpoints)];
        self.update(&[("default/web".into(), entry(text, &slices))])
            .await;
    }

    async fn sweep(&mut self) {
        for _ in 0..2 {
            let steps = self.state.sweep();
            self.table.nft.commit(&changes(&steps)).await.unwrap();
        }
    }
}

const WEB: &str = "ip=10.43.0.1 ports=http/tcp/80";

#[test]
fn connections_are_spread_over_the_endpoints_that_there_are() {
    isolated(async || {
        let mut bench = Bench::new().await;
        for address in ["10.99.0.5", "10.99.0.6", "10.99.0.7"] {
            listen(address);
        }
        bench.web(WEB, "10.99.0.5\n10.99.0.6\n10.99.0.7").await;
        assert_eq!(
            all_of("10.43.0.1:80"),
            set(&["10.99.0.5", "10.99.0.6", "10.99.0.7"])
        );
        bench.web(WEB, "10.99.0.6\n10.99.0.7").await;
        assert_eq!(all_of("10.43.0.1:80"), set(&["10.99.0.6", "10.99.0.7"]));
        bench.web(WEB, "10.99.0.5").await;
        assert_eq!(all_of("10.43.0.1:80"), set(&["10.99.0.5"]));
        bench.web(WEB, "").await;
        refused("10.43.0.1:80");
        bench.sweep().await;
        bench.web(WEB, "10.99.0.5").await;
        assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
        // A port that the Service does not have.
        refused("10.43.0.1:81");
    });
}

#[test]
fn both_families_are_routed() {
    isolated(async || {
        let mut bench = Bench::new().await;
        listen("10.99.0.5");
        listen("fd99::5");
        let slices = [
            slice("http/tcp/8080", "10.99.0.5"),
            slice("http/tcp/8080", "fd99::5"),
        ];
        let service = entry(
            "ip=10.43.0.1,fd43::1 ports=http/tcp/80/30080 affinity=60",
            &slices,
        );
        bench.update(&[("default/web".into(), service)]).await;
        assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
        assert_eq!(ask("[fd43::1]:80"), ip("fd99::5"));
        assert_eq!(ask("10.99.0.1:30080"), ip("10.99.0.5"));
        assert_eq!(ask("[fd99::1]:30080"), ip("fd99::5"));
        refused("[fd43::1]:81");
        let none = entry("ip=10.43.0.1,fd43::1 ports=http/tcp/80/30080", &[]);
        bench.update(&[("default/web".into(), none)]).await;
        refused("[fd43::1]:80");
        refused("[fd99::1]:30080");
        refused("10.99.0.1:30080");
    });
}

#[test]
fn a_client_keeps_its_endpoint_for_as_long_as_that_is_there() {
    isolated(async || {
        let mut bench = Bench::new().await;
        let all = ["10.99.0.5", "10.99.0.6", "10.99.0.7", "10.99.0.8"];
        for address in all {
            listen(address);
        }
        let text = format!("{WEB} affinity=60");
        bench.web(&text, &all.join("\n")).await;
        let first = ask("10.43.0.1:80");
        assert_eq!(all_of("10.43.0.1:80"), [first].into());
        // All is written anew, as after a restart.
        bench.write_whole().await;
        assert_eq!(all_of("10.43.0.1:80"), [first].into());
        let rest: Vec<_> = all
            .into_iter()
            .filter(|address| ip(address) != first)
            .collect();
        bench.web(&text, &rest.join("\n")).await;
        let second = ask("10.43.0.1:80");
        assert_ne!(second, first);
        assert_eq!(all_of("10.43.0.1:80"), [second].into());
        // It is back, and is not gone back to.
        bench.web(&text, &all.join("\n")).await;
        assert_eq!(all_of("10.43.0.1:80"), [second].into());
    });
}

#[test]
fn affinity_runs_out() {
    isolated(async || {
        let mut bench = Bench::new().await;
        let all = ["10.99.0.5", "10.99.0.6", "10.99.0.7", "10.99.0.8"];
        for address in all {
            listen(address);
        }
        bench
            .web(&format!("{WEB} affinity=1"), &all.join("\n"))
            .await;
        let first = ask("10.43.0.1:80");
        // Each connection makes it last longer; a pause ends it.
        let later = (0..16).map(|_| {
            std::thread::sleep(Duration::from_millis(1200));
            ask("10.43.0.1:80")
        });
        assert!(later.into_iter().any(|other| other != first));
    });
}

#[test]
fn local_policy_drops_what_comes_for_other_nodes() {
    isolated(async || {
        let mut bench = Bench::new().await;
        listen("10.99.0.5");
        let text = "ip=10.43.0.1 ports=http/tcp/80/30080 external=1.2.3.4";
        bench
            .web(&format!("{text} internal-local"), "10.99.0.5 there")
            .await;
        dropped("10.43.0.1:80");
        // The node itself is let through to wherever the endpoints are.
        bench
            .web(&format!("{text} external-local"), "10.99.0.5 there")
            .await;
        assert_eq!(ask("1.2.3.4:80"), ip("10.99.0.5"));
        assert_eq!(ask("10.99.0.1:30080"), ip("10.99.0.5"));
        bench.web(&format!("{text} external-local"), "").await;
        refused("1.2.3.4:80");
        refused("10.99.0.1:30080");
    });
}

#[test]
fn a_load_balancers_address_is_for_its_sources() {
    isolated(async || {
        let mut bench = Bench::new().await;
        listen("10.99.0.5");
        let text = "ip=10.43.0.1 ports=http/tcp/80 balancer=5.6.7.8";
        bench
            .web(&format!("{text} ranges=10.99.0.0/24"), "10.99.0.5")
            .await;
        assert_eq!(ask("5.6.7.8:80"), ip("10.99.0.5"));
        bench
            .web(
                &format!("{text} ranges=172.16.0.0/12,10.98.0.0/16"),
                "10.99.0.5",
            )
            .await;
        dropped("5.6.7.8:80");
        assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
        bench.web(text, "10.99.0.5").await;
        assert_eq!(ask("5.6.7.8:80"), ip("10.99.0.5"));
    });
}

#[test]
fn a_client_over_udp_leaves_an_endpoint_that_is_gone() {
    isolated(async || {
        let mut bench = Bench::new().await;
        let mut servers = Vec::new();
        for address in ["10.99.0.5", "10.99.0.6"] {
            ip_command(&format!("addr add {address}/32 dev far"));
            let server = UdpSocket::bind((ip(address), 53)).unwrap();
            server.set_read_timeout(Some(PATIENCE)).unwrap();
            servers.push(server);
        }
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        let of = |endpoint: &str| {
            entry(
                "ip=10.43.0.1 ports=dns/udp/53",
                &[slice("dns/udp/53", endpoint)],
            )
        };
        let heard = |server: &UdpSocket| {
            client.send_to(b"?", "10.43.0.1:53").unwrap();
            server.recv(&mut [0; 8])
        };
        bench
            .update(&[("default/dns".into(), of("10.99.0.5"))])
            .await;
        heard(&servers[0]).unwrap();
        bench
            .update(&[("default/dns".into(), of("10.99.0.6"))])
            .await;
        // The kernel has the connection in mind.
        heard(&servers[0]).unwrap();
        let mut served = Served::default();
        served.add(&of("10.99.0.5\n10.99.0.6"), |_| true);
        assert_eq!(conntrack::forget(&served).await.unwrap(), 0);
        let mut served = Served::default();
        served.add(&of("10.99.0.6"), |_| true);
        assert_eq!(conntrack::forget(&served).await.unwrap(), 1);
        heard(&servers[1]).unwrap();
        assert_eq!(conntrack::forget(&served).await.unwrap(), 0);
    });
}

#[test]
fn all_can_be_written_over_what_another_version_left() {
    isolated(async || {
        let mut bench = Bench::new().await;
        listen("10.99.0.5");
        bench.web(&format!("{WEB} affinity=60"), "10.99.0.5").await;
        bench
            .web(
                "ip=10.43.0.1 ports=http/tcp/80/30080 balancer=5.6.7.8 ranges=10.0.0.0/8",
                "10.99.0.5",
            )
            .await;
        for _ in 0..2 {
            bench.write_whole().await;
            assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
        }
        // A state that knows nothing of it.
        bench.state = State::default();
        bench.write_whole().await;
        bench.sweep().await;
        let chains = bench.table.nft.chains().await.unwrap();
        assert_eq!(of_services(&chains).count(), 0);
        dropped("10.43.0.1:80");
    });
}

#[test]
fn nothing_is_left_where_routing_is_off() {
    isolated(async || {
        let mut bench = Bench::new().await;
        listen("10.99.0.5");
        let text = format!("{WEB}/30080 affinity=60");
        bench.web(&text, "10.99.0.5").await;
        assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
        clear(bench.table.clone(), bench.stop.clone()).await;
        dropped("10.43.0.1:80");
        refused("10.99.0.1:30080");
        let chains = bench.table.nft.chains().await.unwrap();
        assert_eq!(of_services(&chains).count(), 0);
        let rules = bench.table.nft.rules(Some(SERVICES)).await.unwrap();
        assert_eq!(rules.len(), 0);
        assert_eq!(bench.table.nft.sets().await.unwrap().len(), 0);
        // Where there is nothing, nothing is done; what others have in the table stays.
        let mut others = Batch::new();
        others.add_set(&Set::new("host-ports-4", &[Kind::Port]));
        bench.table.nft.commit(&others).await.unwrap();
        let sets = bench.table.nft.sets().await.unwrap();
        assert!(without_rules(&chains, &sets).is_empty());
        clear(bench.table.clone(), bench.stop.clone()).await;
        assert_eq!(bench.table.nft.sets().await.unwrap().len(), 1);
        // And it can be switched on again.
        bench.write_whole().await;
        assert_eq!(ask("10.43.0.1:80"), ip("10.99.0.5"));
    });
}
