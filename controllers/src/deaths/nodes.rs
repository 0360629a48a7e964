//! Networks of nodes, and nodes that are not heard of.

use std::time::Duration;

use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, change, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn two_families() -> Config {
    Config {
        cluster_cidr: "fd00::/56,10.42.0.0/16".to_owned(),
        ..Config::default()
    }
}

fn add(cluster: &FakeCluster, name: &str) {
    cluster
        .api
        .put(&node(name), json!({"metadata": {}, "spec": {}}));
}

fn has_networks(cluster: &FakeCluster, name: &str, networks: &[&str]) -> bool {
    at(cluster, &node(name), "/spec/podCIDRs") == json!(networks)
}

pub(super) static NETWORKS: Story = Story {
    loops: &["node-ipam"],
    config: two_families,
    beat: None,
    writes_min: 3,
    names_vary: false,
    steps: &[
        Step {
            what: "a node has its own, beside one that had it before",
            happens: |cluster| {
                let spec = json!({"podCIDR": "10.42.0.0/24", "podCIDRs": ["10.42.0.0/24"]});
                cluster
                    .api
                    .put(&node("old"), json!({"metadata": {}, "spec": spec}));
                add(cluster, "a");
            },
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "a", &["fd00::/64", "10.42.1.0/24"]),
        },
        Step {
            what: "the next node has the next ones",
            happens: |cluster| add(cluster, "b"),
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "b", &["fd00:0:0:1::/64", "10.42.2.0/24"]),
        },
        Step {
            what: "what a node leaves is for the next",
            happens: |cluster| cluster.api.delete(&node("a")),
            takes: AT_ONCE,
            done: |cluster| !there(cluster, &node("a")),
        },
        Step {
            what: "which has it",
            happens: |cluster| add(cluster, "c"),
            takes: AT_ONCE,
            done: |cluster| has_networks(cluster, "c", &["fd00::/64", "10.42.1.0/24"]),
        },
    ],
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn conditions() -> Value {
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let pressures = pressures.map(|kind| json!({"type": kind, "status": "False"}));
    let ready = json!({"type": "Ready", "status": "True"});
    pressures.into_iter().chain([ready]).collect()
}

fn put_node(cluster: &FakeCluster, name: &str) {
    let metadata = json!({"labels": {"alive": "true"}});
    let status = json!({"conditions": conditions()});
    let all = json!({"metadata": metadata, "spec": {}, "status": status});
    cluster.api.put(&node(name), all);
}

/// Those that live renew their leases, and tell that they are ready where somebody says otherwise.
fn renew(cluster: &FakeCluster) {
    for object in cluster.api.objects("/api/v1/nodes") {
        if object["metadata"]["labels"]["alive"] != "true" {
            continue;
        }
        let name = object["metadata"]["name"].as_str().expect("has one");
        let lease = format!("{LEASES}/{name}");
        let before = at(cluster, &lease, "/spec/renewTime");
        let before = before.as_str().unwrap_or("2030-01-01T00:00:00.000000Z");
        let before: jiff::Timestamp = before.parse().expect("a time");
        let next = before + jiff::SignedDuration::from_secs(10);
        let spec = json!({"renewTime": format!("{next:.6}")});
        let renewed = json!({"metadata": {}, "spec": spec});
        cluster.api.put(&lease, renewed);
        if is_ready(cluster, &node(name)) != "True" {
            let status = json!({"conditions": conditions()});
            change(cluster, &node(name), &json!({"status": status}));
        }
    }
}

fn pod(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

/// Bears it for so many seconds.
fn put_pod(cluster: &FakeCluster, name: &str, on: &str, bears_s: Option<u64>) {
    let tolerations = bears_s.map(|seconds| {
        json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}])
    });
    let spec = json!({"containers": [], "nodeName": on, "tolerations": tolerations});
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    cluster.api.put(
        &pod(name),
        json!({"metadata": {}, "spec": spec, "status": status}),
    );
}

fn is_ready(cluster: &FakeCluster, path: &str) -> Value {
    let conditions = at(cluster, path, "/status/conditions");
    let mut all = conditions.as_array().into_iter().flatten();
    let ready = all.find(|one| one["type"] == "Ready");
    ready.map_or(Value::Null, |one| one["status"].clone())
}

fn taints(cluster: &FakeCluster, name: &str) -> usize {
    at(cluster, &node(name), "/spec/taints")
        .as_array()
        .map_or(0, Vec::len)
}

pub(super) static LOST: Story = Story {
    loops: &["node-lifecycle", "taint-eviction"],
    config: Config::default,
    beat: Some(renew),
    writes_min: 6,
    names_vary: false,
    steps: &[
        Step {
            what: "all is well",
            happens: |cluster| {
                ["a", "b"].iter().for_each(|name| put_node(cluster, name));
                put_pod(cluster, "never", "a", None);
                put_pod(cluster, "short", "a", Some(100));
                put_pod(cluster, "long", "a", Some(1000));
                put_pod(cluster, "other", "b", None);
            },
            takes: Duration::from_secs(60),
            done: |cluster| taints(cluster, "a") == 0,
        },
        Step {
            what: "a node is lost, and the pod that does not bear it goes",
            happens: |cluster| change(cluster, &node("a"), &json!({"metadata": {"labels": null}})),
            takes: Duration::from_secs(60),
            done: |cluster| {
                is_ready(cluster, &node("a")) == "Unknown"
                    && taints(cluster, "a") == 2
                    && is_ready(cluster, &pod("long")) == "False"
                    && !there(cluster, &pod("never"))
            },
        },
        Step {
            what: "another goes when it has borne it long enough",
            happens: |_| {},
            takes: Duration::from_secs(200),
            done: |cluster| !there(cluster, &pod("short")) && there(cluster, &pod("long")),
        },
        Step {
            what: "it is back, and keeps the rest",
            happens: |cluster| {
                let alive = json!({"metadata": {"labels": {"alive": "true"}}});
                change(cluster, &node("a"), &alive);
            },
            takes: Duration::from_secs(1200),
            done: |cluster| {
                taints(cluster, "a") == 0
                    && there(cluster, &pod("long"))
                    && there(cluster, &pod("other"))
            },
        },
    ],
};

const TTL: &str = "/metadata/annotations/node.alpha.kubernetes.io~1ttl";

pub(super) static TIMES: Story = Story {
    loops: &[crate::node_ttl::NAME],
    config: Config::default,
    beat: None,
    writes_min: 4,
    names_vary: false,
    steps: &[
        Step {
            what: "each node is told",
            happens: |cluster| ["a", "b"].iter().for_each(|name| add(cluster, name)),
            takes: AT_ONCE,
            done: |cluster| {
                ["a", "b"]
                    .iter()
                    .all(|name| at(cluster, &node(name), TTL) == "0")
            },
        },
        Step {
            what: "and one that came, and one that somebody told something else",
            happens: |cluster| {
                let other = json!({"metadata": {"annotations":
                    {"node.alpha.kubernetes.io/ttl": "3600"}}});
                change(cluster, &node("a"), &other);
                add(cluster, "c");
            },
            takes: AT_ONCE,
            done: |cluster| {
                ["a", "b", "c"]
                    .iter()
                    .all(|name| at(cluster, &node(name), TTL) == "0")
            },
        },
    ],
};

const SLICE: &str = "/apis/resource.k8s.io/v1/resourceslices/s";

fn claim(name: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}")
}

/// Its device `name` has a taint of the first second, or none.
fn put_devices(cluster: &FakeCluster, tainted: &[&str]) {
    let device = |name: &&str| {
        let taint = json!({"key": "sick", "effect": "NoExecute",
            "timeAdded": "2030-01-01T00:00:00Z"});
        let taints = if tainted.contains(name) {
            vec![taint]
        } else {
            Vec::new()
        };
        json!({"name": name, "taints": taints})
    };
    let devices: Vec<Value> = ["a", "b"].iter().map(device).collect();
    let slice = json!({"spec": {"driver": "d", "nodeName": "n", "devices": devices,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
    cluster.api.put(SLICE, slice);
}

/// Uses a device by a claim of its own, which bears the taint for so many seconds.
fn put_user(cluster: &FakeCluster, name: &str, device: &str, seconds: u64) {
    let claims = json!([{"name": "gpu", "resourceClaimName": name}]);
    let user = json!({"metadata": {"uid": name}, "spec": {"nodeName": "n", "containers": [],
        "resourceClaims": claims}, "status": {"phase": "Running"}});
    cluster.api.put(&pod(name), user);
    let tolerations = json!([{"operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": seconds}]);
    let given = json!({"driver": "d", "pool": "p", "device": device, "request": "one",
        "tolerations": tolerations});
    let reserved = json!([{"resource": "pods", "name": name, "uid": name}]);
    let status = json!({"allocation": {"devices": {"results": [given]}}, "reservedFor": reserved});
    cluster
        .api
        .put(&claim(name), json!({"spec": {}, "status": status}));
}

pub(super) static DEVICES: Story = Story {
    loops: &[crate::device_taint_eviction::NAME],
    config: Config::default,
    beat: None,
    writes_min: 6,
    names_vary: false,
    steps: &[
        Step {
            what: "who does not bear the taint goes",
            happens: |cluster| {
                put_devices(cluster, &["a"]);
                put_user(cluster, "at-once", "a", 0);
                put_user(cluster, "later", "a", 1800);
                put_user(cluster, "spared", "a", 7200);
                put_user(cluster, "other", "b", 0);
            },
            takes: AT_ONCE,
            done: |cluster| {
                !there(cluster, &pod("at-once"))
                    && ["later", "spared", "other"]
                        .iter()
                        .all(|name| there(cluster, &pod(name)))
            },
        },
        Step {
            what: "who bore it for a while goes, and so does who uses what is tainted now",
            happens: |cluster| put_devices(cluster, &["a", "b"]),
            takes: Duration::from_secs(1800),
            done: |cluster| {
                !there(cluster, &pod("later"))
                    && !there(cluster, &pod("other"))
                    && there(cluster, &pod("spared"))
            },
        },
        Step {
            what: "without the taint the rest stays",
            happens: |cluster| put_devices(cluster, &[]),
            takes: Duration::from_secs(7200),
            done: |cluster| there(cluster, &pod("spared")),
        },
    ],
};
