//! Pods and nodes of all sorts.

use k8s_openapi::api::core::v1::{Node, Pod};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

pub const NODES: usize = 5;
pub const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What a node of this name has, always: thousandths of a cpu, and places for pods.
pub fn capacity(name: &str) -> (i64, usize) {
    let place: i64 = name.trim_start_matches('n').parse().unwrap_or(0);
    (3000 + place * 1000, 4 + name.len())
}

pub fn node(place: usize) -> Node {
    let name = format!("n{place}");
    let (cpu, pods) = capacity(&name);
    from(json!({
        "metadata": { "name": name, "labels": {
            HOSTNAME: name, ZONE: format!("z{}", place % 2), "disk": "ssd",
        } },
        "spec": {},
        "status": { "allocatable": { "cpu": format!("{cpu}m"), "pods": pods.to_string() } },
    }))
}

/// One of ours in most cases; `uid` is its name for ever, `name` may be given again.
pub fn pod(random: &mut StdRng, name: &str, uid: &str) -> Pod {
    let app = ["a", "b", "c"][random.random_range(0..3)];
    let cpu = random.random_range(1..=6) * 500;
    let priority = [0, 0, 5, 10][random.random_range(0..4)];
    let mut spec = json!({
        "priority": priority,
        "containers": [{ "name": "c", "resources": { "requests": { "cpu": format!("{cpu}m") } } }],
    });
    let key = if random.random_bool(0.5) {
        HOSTNAME
    } else {
        ZONE
    };
    let selector = json!({ "matchLabels": { "app": app } });
    let term = json!([{ "topologyKey": key, "labelSelector": selector }]);
    let required = |term| json!({ "requiredDuringSchedulingIgnoredDuringExecution": term });
    match random.random_range(0..20) {
        0 => spec["affinity"] = json!({ "podAffinity": required(term) }),
        1 | 2 => spec["affinity"] = json!({ "podAntiAffinity": required(term) }),
        3 => {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }]);
        }
        4 => spec["containers"][0]["ports"] = json!([{ "containerPort": 80, "hostPort": 80 }]),
        5 => spec["nodeSelector"] = json!({ "disk": "ssd" }),
        6 => spec["tolerations"] = json!([{ "operator": "Exists" }]),
        7 | 8 => spec["schedulingGates"] = json!([{ "name": "g" }]),
        9 => spec["preemptionPolicy"] = "Never".into(),
        _ => {}
    }
    from(json!({
        "metadata": { "name": name, "namespace": "default", "uid": uid, "labels": { "app": app } },
        "spec": spec,
        "status": { "phase": "Pending" },
    }))
}

pub fn from<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}
