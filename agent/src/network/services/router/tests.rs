//! The loop with the real kernel, in a network namespace of the test's own.

use super::super::fixtures;
use super::super::health::Health;
use super::super::kernel::tests::{ask, isolated, listen, try_ask};
use super::Router;
use crate::network::nft::{Batch, Nft};
use crate::network::table::Table;
use crate::network::testing::ip_command;
use crate::network::view::View;
use coracle_client::clock::Clock;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// At most, for what takes a moment.
const WAIT: Duration = Duration::from_secs(60);

fn service(name: &str, address: &str, protocol: &str) -> Service {
    serde_json::from_value(json!({
        "metadata": { "namespace": "default", "name": name },
        "spec": {
            "clusterIP": address, "clusterIPs": [address], "ipFamilies": ["IPv4"],
            "ports": [{ "name": "x", "protocol": protocol, "port": 80, "targetPort": 8080 }],
        },
    }))
    .unwrap()
}

fn slice(service: &str, protocol: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({ "addresses": [address] }))
        .collect();
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "default", "name": format!("{service}-1"),
            "labels": { "kubernetes.io/service-name": service },
        },
        "addressType": "IPv4",
        "ports": [{ "name": "x", "protocol": protocol, "port": 8080 }],
        "endpoints": endpoints,
    }))
    .unwrap()
}

struct Running {
    view: View,
    node: watch::Sender<super::Node>,
    health: Arc<Health>,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn start(view: View) -> Running {
    let (table, keeper) = Table::open().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(keeper.run(stop.clone()));
    let (sender, node) = watch::channel(fixtures::node());
    let health = Arc::new(Health::new(Clock::system()));
    let router = Router {
        table,
        view: view.clone(),
        node,
        health: health.clone(),
        ports_changed: Arc::new(Notify::new()),
        clock: Clock::system(),
    };
    tokio::spawn(router.run(stop.clone()));
    Running {
        view,
        node: sender,
        health,
        stop,
    }
}

/// Until it holds; the kernel is asked again and again.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let holding = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let held = tokio::time::timeout(WAIT, holding).await;
    held.unwrap_or_else(|_| panic!("waited for this to hold: {what}"));
}

/// A busy machine may take longer: only asked again and again.
const SOON: Duration = Duration::from_millis(500);

fn answers(to: &str, who: &str) -> bool {
    try_ask(to, SOON).is_ok_and(|(answered, _)| answered == who.parse::<IpAddr>().unwrap())
}

fn refuses(to: &str) -> bool {
    try_ask(to, SOON).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[test]
fn what_the_view_tells_is_in_the_kernel_and_comes_back_when_it_is_taken_away() {
    isolated(async || {
        listen("10.99.0.5");
        listen("10.99.0.6");
        let web = service("web", "10.43.0.1", "TCP");
        let view = View::of(&[web], &[slice("web", "TCP", &["10.99.0.5"])], &[]);
        let running = start(view);
        until("it is routed", || answers("10.43.0.1:80", "10.99.0.5")).await;
        running.view.put_slice(&slice("web", "TCP", &["10.99.0.6"]));
        until("another answers", || answers("10.43.0.1:80", "10.99.0.6")).await;
        let stranger = Nft::open().unwrap();
        let mut flush = Batch::new();
        flush.delete_table();
        stranger.commit(&flush).await.unwrap();
        until("it is routed again", || {
            answers("10.43.0.1:80", "10.99.0.6")
        })
        .await;
        let chain = "svc-c4/default/web/tcp/x";
        let mut meddle = Batch::new();
        meddle.flush_chain(chain);
        stranger.commit(&meddle).await.unwrap();
        until("its chain is mended", || {
            answers("10.43.0.1:80", "10.99.0.6")
        })
        .await;
        // Other pods' addresses: the frame is written anew.
        let mut node = fixtures::node();
        node.pod_cidrs = vec![fixtures::cidr("10.77.0.0/24")];
        running.node.send(node).unwrap();
        running.view.put_slice(&slice("web", "TCP", &[]));
        until("it is refused", || refuses("10.43.0.1:80")).await;
        running.view.put_slice(&slice("web", "TCP", &["10.99.0.5"]));
        until("it is routed at last", || {
            answers("10.43.0.1:80", "10.99.0.5")
        })
        .await;
        assert_eq!(ask("10.43.0.1:80"), IpAddr::from([10, 99, 0, 5]));
        let livez = running.health.of_node("/livez").unwrap();
        assert_eq!(livez.status, http::StatusCode::OK);
        running.view.forget("default/web");
        until("it is routed no more", || {
            !answers("10.43.0.1:80", "10.99.0.5")
        })
        .await;
        let swept = async {
            loop {
                let chains = stranger.chains().await.unwrap();
                if !chains.iter().any(|found| found.name == chain) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(WAIT, swept).await.unwrap();
    });
}

#[test]
fn what_is_stale_is_swept_while_others_change() {
    isolated(async || {
        let services = [("web", "10.43.0.1"), ("other", "10.43.0.2")]
            .map(|(name, address)| service(name, address, "TCP"));
        let slices = ["web", "other"].map(|name| slice(name, "TCP", &["10.99.0.5"]));
        let running = start(View::of(&services, &slices, &[]));
        let stranger = Nft::open().unwrap();
        let has_chain = async |name: &str| {
            let chains = stranger.chains().await.unwrap();
            let name = format!("svc-c4/default/{name}/tcp/x");
            chains.iter().any(|found| found.name == name)
        };
        let made = async {
            while !has_chain("web").await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(WAIT, made).await.unwrap();
        running.view.forget("default/web");
        // For a minute at least.
        for change in 0..600 {
            let endpoint = format!("10.99.0.{}", 6 + change % 2);
            running.view.put_slice(&slice("other", "TCP", &[&endpoint]));
            tokio::time::sleep(Duration::from_millis(100)).await;
            if !has_chain("web").await {
                assert!(has_chain("other").await);
                return;
            }
        }
        panic!("its chain stays");
    });
}

#[test]
fn clients_over_udp_follow_the_endpoints() {
    isolated(async || {
        let servers = ["10.99.0.5", "10.99.0.6"].map(|address| {
            ip_command(&format!("addr add {address}/32 dev far"));
            let server = UdpSocket::bind((address, 8080)).unwrap();
            server.set_nonblocking(true).unwrap();
            server
        });
        let view = View::of(
            &[service("dns", "10.43.0.1", "UDP")],
            &[slice("dns", "UDP", &["10.99.0.5"])],
            &[],
        );
        let running = start(view);
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        let is_heard = |server: &UdpSocket| {
            drop(client.send_to(b"?", "10.43.0.1:80"));
            server.recv(&mut [0; 8]).is_ok()
        };
        until("the first hears", || is_heard(&servers[0])).await;
        running.view.put_slice(&slice("dns", "UDP", &["10.99.0.6"]));
        until("the second hears the same client", || is_heard(&servers[1])).await;
    });
}
