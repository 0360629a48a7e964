//! Endpoints and slices of Services, and addresses of balanced ones.

use std::time::Duration;

use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, there};
use crate::Config;
use crate::fake_cluster::{FakeCluster, WEB};

const ENDPOINTS_OF_WEB: &str = "/api/v1/namespaces/default/endpoints/web";
const SLICES_OF_ALL: &str = "/apis/discovery.k8s.io/v1/endpointslices";

fn pod(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

/// The first address of each of these.
fn addresses(list: &Value, of: &str) -> Vec<String> {
    let all = list.as_array().cloned().unwrap_or_default();
    let mut all: Vec<String> = all
        .iter()
        .map(|one| {
            one.pointer(of)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        })
        .collect();
    all.sort();
    all
}

fn has_endpoints(cluster: &FakeCluster, ready: &[&str], not_ready: &[&str]) -> bool {
    let of = |field: &str| {
        let list = at(cluster, ENDPOINTS_OF_WEB, &format!("/subsets/0/{field}"));
        addresses(&list, "/ip")
    };
    there(cluster, ENDPOINTS_OF_WEB)
        && of("addresses") == ready
        && of("notReadyAddresses") == not_ready
}

pub(super) static ENDPOINTS: Story = Story {
    loops: &["endpoints"],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "both pods are there",
            happens: |cluster| {
                cluster.put_service();
                cluster.put_pod("a", "10.0.0.1", true);
                cluster.put_pod("b", "10.0.0.2", false);
            },
            takes: AT_ONCE,
            done: |cluster| has_endpoints(cluster, &["10.0.0.1"], &["10.0.0.2"]),
        },
        Step {
            what: "one became ready, one went and one came",
            happens: |cluster| {
                cluster.put_pod("b", "10.0.0.2", true);
                cluster.api.delete(&pod("a"));
                cluster.put_pod("c", "10.0.0.3", false);
            },
            takes: AT_ONCE,
            done: |cluster| has_endpoints(cluster, &["10.0.0.2"], &["10.0.0.3"]),
        },
        Step {
            what: "they are made again when they were deleted",
            happens: |cluster| cluster.api.delete(ENDPOINTS_OF_WEB),
            takes: AT_ONCE,
            done: |cluster| has_endpoints(cluster, &["10.0.0.2"], &["10.0.0.3"]),
        },
        Step {
            what: "they go with their Service",
            happens: |cluster| cluster.api.delete(WEB),
            takes: AT_ONCE,
            done: |cluster| !there(cluster, ENDPOINTS_OF_WEB),
        },
    ],
};

/// Of the only slice; a plus for those that are ready.
fn has_slice(cluster: &FakeCluster, wanted: &[&str]) -> bool {
    let slices = cluster.api.objects(SLICES_OF_ALL);
    let endpoint = |one: &Value| {
        let address = one["addresses"][0].as_str().unwrap_or("");
        let is_ready = one["conditions"]["ready"] == true;
        format!("{address}{}", if is_ready { "+" } else { "" })
    };
    let [slice] = slices.as_slice() else {
        return false;
    };
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let mut endpoints: Vec<String> = endpoints.map(endpoint).collect();
    endpoints.sort();
    endpoints == wanted
}

pub(super) static SLICES: Story = Story {
    loops: &["endpointslice"],
    config: Config::default,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "both pods are there",
            happens: |cluster| {
                cluster.api.put("/api/v1/nodes/n", json!({}));
                cluster.put_pod("a", "10.0.0.1", true);
                cluster.put_pod("b", "10.0.0.2", false);
                cluster.put_service();
            },
            takes: AT_ONCE,
            done: |cluster| has_slice(cluster, &["10.0.0.1+", "10.0.0.2"]),
        },
        Step {
            what: "one became ready, one went and one came",
            happens: |cluster| {
                cluster.put_pod("b", "10.0.0.2", true);
                cluster.api.delete(&pod("a"));
                cluster.put_pod("c", "10.0.0.3", false);
            },
            takes: AT_ONCE,
            done: |cluster| has_slice(cluster, &["10.0.0.2+", "10.0.0.3"]),
        },
        Step {
            what: "it is made again when it was deleted",
            happens: |cluster| {
                let slice = cluster.api.objects(SLICES_OF_ALL).remove(0);
                let name = slice["metadata"]["name"].as_str().expect("has one");
                let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
                cluster.api.delete(&format!("{slices}/{name}"));
            },
            takes: AT_ONCE,
            done: |cluster| has_slice(cluster, &["10.0.0.2+", "10.0.0.3"]),
        },
    ],
};

fn put_mirrored(cluster: &FakeCluster, name: &str, ip: &str) {
    let subset = json!({"addresses": [{"ip": ip}], "ports": [{"port": 80, "protocol": "TCP"}]});
    let path = format!("/api/v1/namespaces/default/endpoints/{name}");
    cluster
        .api
        .put(&path, json!({"metadata": {}, "subsets": [subset]}));
}

/// The first addresses of all slices.
fn mirrors(cluster: &FakeCluster, wanted: &[&str]) -> bool {
    let slices = Value::from(cluster.api.objects(SLICES_OF_ALL));
    addresses(&slices, "/endpoints/0/addresses/0") == wanted
}

pub(super) static MIRRORED: Story = Story {
    loops: &["endpointslice-mirroring"],
    config: Config::default,
    beat: None,
    writes_min: 5,
    names_vary: false,
    steps: &[
        Step {
            what: "both are mirrored",
            happens: |cluster| {
                for (name, ip) in [("db", "10.0.0.1"), ("mq", "10.0.0.2")] {
                    let path = format!("/api/v1/namespaces/default/services/{name}");
                    cluster.api.put(&path, json!({"spec": {}}));
                    put_mirrored(cluster, name, ip);
                }
            },
            takes: AT_ONCE,
            done: |cluster| mirrors(cluster, &["10.0.0.1", "10.0.0.2"]),
        },
        Step {
            what: "changes are followed",
            happens: |cluster| {
                put_mirrored(cluster, "db", "10.0.0.3");
                put_mirrored(cluster, "mq", "10.0.0.4");
            },
            takes: AT_ONCE,
            done: |cluster| mirrors(cluster, &["10.0.0.3", "10.0.0.4"]),
        },
        Step {
            what: "one goes with its Endpoints",
            happens: |cluster| {
                cluster
                    .api
                    .delete("/api/v1/namespaces/default/endpoints/db")
            },
            takes: AT_ONCE,
            done: |cluster| mirrors(cluster, &["10.0.0.4"]),
        },
    ],
};

fn put_node(cluster: &FakeCluster, name: &str, address: &str) {
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": address}]});
    cluster
        .api
        .put(&format!("/api/v1/nodes/{name}"), json!({"status": status}));
}

fn service(name: &str) -> String {
    format!("/api/v1/namespaces/default/services/{name}")
}

fn put_balanced(cluster: &FakeCluster, name: &str, port: i32, created: &str) {
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"], "ports": [{"port": port}]});
    let metadata = json!({"creationTimestamp": created});
    cluster
        .api
        .put(&service(name), json!({"metadata": metadata, "spec": spec}));
}

fn balances(cluster: &FakeCluster, name: &str, wanted: &[&str]) -> bool {
    let ingress = at(cluster, &service(name), "/status/loadBalancer/ingress");
    addresses(&ingress, "/ip") == wanted
}

pub(super) static BALANCED: Story = Story {
    loops: &["load-balancer"],
    config: Config::default,
    beat: None,
    writes_min: 5,
    names_vary: false,
    steps: &[
        Step {
            what: "two have the nodes, and the younger of two with one port has none",
            happens: |cluster| {
                put_node(cluster, "a", "192.168.1.1");
                put_node(cluster, "b", "192.168.1.2");
                put_balanced(cluster, "web", 80, "2029-12-01T00:00:00Z");
                put_balanced(cluster, "late", 80, "2029-12-02T00:00:00Z");
                put_balanced(cluster, "db", 81, "2029-12-03T00:00:00Z");
            },
            takes: AT_ONCE,
            done: |cluster| {
                let both = ["192.168.1.1", "192.168.1.2"];
                balances(cluster, "web", &both)
                    && balances(cluster, "db", &both)
                    && balances(cluster, "late", &[])
            },
        },
        Step {
            what: "a node goes",
            happens: |cluster| cluster.api.delete("/api/v1/nodes/a"),
            takes: Duration::from_secs(120),
            done: |cluster| {
                balances(cluster, "web", &["192.168.1.2"])
                    && balances(cluster, "db", &["192.168.1.2"])
            },
        },
        Step {
            what: "the port is free",
            happens: |cluster| cluster.api.delete(&service("web")),
            takes: AT_ONCE,
            done: |cluster| balances(cluster, "late", &["192.168.1.2"]),
        },
    ],
};
