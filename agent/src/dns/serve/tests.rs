//! Where names are asked for, and the link that has the address.

use super::*;
use crate::network::testing::{ip_command, isolated_async};
use hickory_proto::op::Query;
use hickory_proto::rr::RecordType;
use serde_json::json;
use tokio::net::UdpSocket;

fn view(annotated: bool) -> View {
    let annotations = json!({"dns.coracle/cluster-domain": "edge.example"});
    let annotations = if annotated { annotations } else { json!({}) };
    let services = serde_json::from_value(json!([{
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "annotations": annotations},
        "spec": {
            "clusterIP": "10.43.0.10", "clusterIPs": ["10.43.0.10", "fd43::a"],
            "ports": [{"port": 53, "protocol": "UDP"}],
        },
    }]));
    let services: Vec<k8s_openapi::api::core::v1::Service> = services.unwrap();
    View::of(&services, &[], &["kube-system"])
}

#[test]
fn pods_are_told_what_the_node_was_told_or_what_the_cluster_says() {
    let nothing = PodDns::default();
    let said = cluster_dns(&nothing, &view(true)).unwrap();
    assert_eq!(said.domain, "edge.example");
    assert_eq!(said.servers.len(), 2);
    // Of others, who tell no domain.
    assert_eq!(
        cluster_dns(&nothing, &view(false)).unwrap().domain,
        "cluster.local"
    );
    let told = PodDns {
        servers: vec!["169.254.20.10".parse().unwrap()],
        domain: Some("other.local".to_owned()),
    };
    let said = cluster_dns(&told, &view(true)).unwrap();
    assert_eq!(said.servers, told.servers);
    assert_eq!(said.domain, "other.local");
    assert_eq!(cluster_dns(&nothing, &View::new()), None);
}

/// In a network namespace of the test's own.
fn isolated<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) {
    isolated_async(|| {
        ip_command("link set lo up");
        work()
    });
}

async fn answer(server: &str, text: &str) -> Option<usize> {
    let query = Query::query(super::super::testing::name(text), RecordType::A);
    let packet = super::super::message::ask(5, &query, false, false);
    let any = if server.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let socket = UdpSocket::bind(any).await.unwrap();
    let server: IpAddr = server.parse().unwrap();
    socket.connect(SocketAddr::new(server, PORT)).await.ok()?;
    socket.send(&packet).await.ok()?;
    let mut buffer = [0; 2048];
    let received = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut buffer)).await;
    let length = received.ok()?.ok()?;
    let message = super::super::message::read_answer(&buffer[..length], 5, &query)?;
    Some(message.answers.len())
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn service(view: &View) -> Service {
    Service {
        view: view.clone(),
        clock: Clock::system(),
        resolv_conf: "/nonexistent".into(),
    }
}

const NAME: &str = "kube-dns.kube-system.svc.edge.example";

#[test]
fn the_node_takes_the_addresses_and_gives_them_back_with_the_service() {
    isolated(|| async {
        let links = Links::open().unwrap();
        let view = view(true);
        let stop = CancellationToken::new();
        let task = tokio::spawn(service(&view).run(stop.clone()));
        for server in ["10.43.0.10", "fd43::a"] {
            until(async || answer(server, NAME).await.is_some()).await;
        }
        until(async || answer("10.43.0.10", NAME).await == Some(1)).await;
        view.forget(DNS_SERVICE);
        until(async || !links.has(LINK).await).await;
        stop.cancel();
        task.await.unwrap();
    });
}

#[test]
fn what_somebody_does_to_the_link_is_mended() {
    isolated(|| async {
        let stop = CancellationToken::new();
        let task = tokio::spawn(service(&view(true)).run(stop.clone()));
        let both_answer = async || {
            for server in ["10.43.0.10", "fd43::a"] {
                until(async || answer(server, NAME).await.is_some()).await;
            }
        };
        both_answer().await;
        for harm in [
            format!("link del {LINK}"),
            format!("addr flush dev {LINK}"),
            format!("link set {LINK} down"),
        ] {
            ip_command(&harm);
            both_answer().await;
        }
        stop.cancel();
        task.await.unwrap();
    });
}

#[test]
fn without_one_family_the_other_is_answered() {
    isolated(|| async {
        let off = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
        std::fs::write(off, "1").unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(service(&view(true)).run(stop.clone()));
        until(async || answer("10.43.0.10", NAME).await.is_some()).await;
        // It may come later.
        std::fs::write(off, "0").unwrap();
        until(async || answer("fd43::a", NAME).await.is_some()).await;
        stop.cancel();
        task.await.unwrap();
    });
}
