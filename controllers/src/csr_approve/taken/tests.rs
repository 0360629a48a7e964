//! What a node that lies about its addresses does not get.

use super::*;
use serde_json::json;

fn taken() -> Taken {
    let node = |name: &str, address: &str| -> Node {
        let status = json!({ "addresses": [{ "type": "InternalIP", "address": address }] });
        serde_json::from_value(json!({ "metadata": { "name": name }, "status": status })).unwrap()
    };
    let slice: EndpointSlice = serde_json::from_value(json!({
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.9"] }],
    }))
    .unwrap();
    let nodes = [node("own", "10.0.0.1"), node("Other", "FD00:0::2")];
    let servers = ["k8s.example.com", "10.43.0.1"].map(str::to_owned);
    Taken::of("own", &nodes, [&slice], &servers)
}

#[test]
fn what_is_its_own_a_node_may_serve() {
    let taken = taken();
    for name in [
        "own",
        "10.0.0.1",
        "svc-1",
        "kubernetes-1",
        "own.example.com",
    ] {
        assert!(!taken.holds(name), "{name}");
    }
}

#[test]
fn neither_another_node_nor_the_api_server_is_served() {
    let taken = taken();
    for name in [
        "other",
        "fd00::2",
        "10.0.0.9",
        "::ffff:10.0.0.9",
        "10.43.0.1",
        "K8s.Example.com.",
        "kubernetes",
        "Kubernetes.default",
        "kubernetes.default.svc",
        "hook.web.svc",
        "hook.web.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "*.default",
    ] {
        assert!(taken.holds(name), "{name}");
    }
}
