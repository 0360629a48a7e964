//! The loop against a server in memory.

use super::balanced::Known;
use super::local::LINGER;
use crate::Config;
use crate::fake_api::eventually;
use crate::fake_cluster::{self, FakeCluster};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

const SERVICE: &str = "/api/v1/namespaces/default/services/web";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1";

fn put_node(cluster: &FakeCluster, name: &str, address: &str) {
    let node = json!({
        "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": address }],
        },
    });
    cluster.api.put(&format!("/api/v1/nodes/{name}"), node);
}

fn put_service(cluster: &FakeCluster, policy: &str) {
    let mut service = cluster.api.get(SERVICE).unwrap_or_else(|| json!({}));
    service["spec"] = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": policy, "ipFamilies": ["IPv4"],
        "ports": [{ "port": 80 }],
    });
    cluster.api.put(SERVICE, service);
}

/// With a ready endpoint on each of these, and one that is not ready on `c`.
fn put_slice(cluster: &FakeCluster, nodes: &[&str]) {
    let endpoint = |node: &str, ready: bool| json!({ "addresses": ["10.42.0.9"], "nodeName": node, "conditions": { "ready": ready } });
    let ready = nodes.iter().map(|node| endpoint(node, true));
    let endpoints: Vec<_> = ready.chain([endpoint("c", false)]).collect();
    let slice = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4", "endpoints": endpoints,
    });
    cluster.api.put(SLICE, slice);
}

fn addresses(cluster: &FakeCluster) -> Vec<String> {
    let service = cluster.api.get(SERVICE).unwrap();
    let ingress = service["status"]["loadBalancer"]["ingress"].clone();
    let all = ingress.as_array().cloned().unwrap_or_default();
    let of = |one: &Value| one["ip"].as_str().unwrap().to_owned();
    all.iter().map(of).collect()
}

/// Of the Service, which is put once.
fn writes(cluster: &FakeCluster) -> usize {
    let changes = cluster.api.changes("/api/v1/services");
    changes
        .iter()
        .filter(|(kind, _)| *kind == "MODIFIED")
        .count()
}

#[test]
fn what_was_written_is_known_unless_it_has_gone() {
    let service = |uid: &str, address: &str| -> Service {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "default", "uid": uid },
            "spec": { "type": "LoadBalancer" },
            "status": { "loadBalancer": { "ingress": [{ "ip": address }] } },
        }))
        .unwrap()
    };
    let mut known = Known::default();
    known.written(&service("u1", "192.168.1.1"));
    assert!(known.services.is_empty());
    known.set(&service("u1", "192.168.1.1"));
    known.written(&service("u1", "192.168.1.2"));
    known.written(&service("u0", "192.168.1.3"));
    let all: Vec<_> = known.services.values().collect();
    let address: std::net::IpAddr = "192.168.1.2".parse().unwrap();
    assert_eq!(all[0].addresses, [address]);
}

fn slices_asked(cluster: &FakeCluster) -> bool {
    let requests = cluster.api.requests();
    requests.iter().any(|of| of.contains("endpointslices"))
}

fn start(cluster: &FakeCluster) -> DropGuard {
    put_node(cluster, "a", "192.168.1.1");
    put_node(cluster, "b", "192.168.1.2");
    put_node(cluster, "c", "192.168.1.3");
    fake_cluster::spawn(cluster.client(), Config::default(), super::run)
}

#[tokio::test(start_paused = true)]
async fn a_local_service_names_the_nodes_with_ready_endpoints() {
    let cluster = FakeCluster::new();
    put_slice(&cluster, &["a"]);
    put_service(&cluster, "Local");
    let _running = start(&cluster);
    eventually("the node of the endpoint", || {
        addresses(&cluster) == ["192.168.1.1"]
    })
    .await;
    put_slice(&cluster, &["a", "b"]);
    eventually("both", || {
        addresses(&cluster) == ["192.168.1.1", "192.168.1.2"]
    })
    .await;
    assert_eq!(writes(&cluster), 2);
    // For a moment alone: nothing is written.
    put_slice(&cluster, &["b"]);
    tokio::time::sleep(LINGER / 2).await;
    put_slice(&cluster, &["a", "b"]);
    tokio::time::sleep(2 * LINGER).await;
    assert_eq!(writes(&cluster), 2);
    put_slice(&cluster, &["b"]);
    eventually("the other one", || addresses(&cluster) == ["192.168.1.2"]).await;
    // With none at all those that there are stay.
    put_slice(&cluster, &[]);
    tokio::time::sleep(2 * LINGER).await;
    assert_eq!(writes(&cluster), 3);
    assert_eq!(addresses(&cluster), ["192.168.1.2"]);
}

#[tokio::test(start_paused = true)]
async fn endpoints_are_followed_for_those_who_ask_alone() {
    let cluster = FakeCluster::new();
    put_slice(&cluster, &["b"]);
    put_service(&cluster, "Cluster");
    let _running = start(&cluster);
    let all = ["192.168.1.1", "192.168.1.2", "192.168.1.3"];
    eventually("all nodes", || addresses(&cluster) == all).await;
    assert!(!slices_asked(&cluster));
    put_service(&cluster, "Local");
    eventually("one node", || addresses(&cluster) == ["192.168.1.2"]).await;
    put_service(&cluster, "Cluster");
    eventually("all nodes", || addresses(&cluster) == all).await;
    // What was followed is not believed later.
    put_slice(&cluster, &["a"]);
    put_service(&cluster, "Local");
    eventually("another node", || addresses(&cluster) == ["192.168.1.1"]).await;
}
