//! How long one cycle takes and how much memory the cache does, without an API server.
//!
//! `cargo bench -p coracle-scheduler --bench cycle -- [SHAPE [NODES [PODS]]]`; see docs/scheduler.md.

use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_scheduler::cache::{Cache, Snapshot};
use coracle_scheduler::cycle::{self, Outcome, Rotation};
use coracle_scheduler::framework::Profile;
use coracle_scheduler::plugins::registry::Plan;
use coracle_scheduler::pod_info::{DEFAULT_SCHEDULER, PodInfo, TraitsTable};
use coracle_scheduler::views::Views;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const SHAPES: [&str; 5] = ["plain", "spread", "affinity", "owned", "named"];
/// What is measured unless it is said otherwise: nodes, and pods on them.
const SIZES: [(usize, usize); 2] = [(100, 1_000), (5_000, 10_000)];
/// Nodes are in this many zones.
const ZONES: usize = 3;

#[allow(clippy::print_stdout)] // The report is for the terminal.
fn main() {
    // `cargo bench` adds an option for its own harness.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<usize>().ok());
    let sizes = match (number(1), number(2)) {
        (Some(nodes), pods) => vec![(nodes, pods.unwrap_or(nodes * 2))],
        _ => SIZES.to_vec(),
    };
    println!("shape      nodes    pods   cycle p50       p99   update p50   a node   a pod");
    for shape in SHAPES {
        if words.first().is_none_or(|only| only == shape) {
            for (nodes, pods) in &sizes {
                println!("{}", measure(shape, *nodes, *pods));
            }
        }
    }
}

/// Pods one after the other, each placed where its cycle says, as the loop does it.
fn measure(shape: &str, nodes: usize, pods: usize) -> String {
    let views = Views::default();
    let profile = profile(&views);
    if shape == "owned" {
        let labels = [("app".to_owned(), "bench".to_owned())];
        let key = coracle_client::ObjectKey::new("default", "bench");
        views.owners.services.set(key, labels.into_iter().collect());
    }
    let (mut snapshot, mut rotation) = (Snapshot::default(), Rotation::default());
    let mut cache = views.cache.lock();
    let empty = resident();
    for number in 0..nodes {
        cache.set_node(&Arc::new(node(number)));
    }
    let with_nodes = resident();
    let traits = TraitsTable::default();
    fill(&mut cache, &traits, shape, nodes, pods);
    let with_pods = resident();
    let (mut cycles, mut updates) = (Vec::new(), Vec::new());
    let clock = Clock::system();
    for number in pods..pods + 1_000 {
        let pod = Arc::new(pod(shape, number, None));
        let pod = Arc::new(PodInfo::sharing(pod, &traits));
        let begun = clock.monotonic();
        cache.update(&mut snapshot);
        updates.push(begun.elapsed());
        let begun = clock.monotonic();
        let outcome = cycle::run(&profile, &snapshot, &pod, &mut rotation, |count| {
            number % count
        });
        cycles.push(begun.elapsed());
        match outcome {
            Outcome::Node(node) => drop(cache.assume(pod, &node)),
            Outcome::NoFit(diagnosis) => panic!("{}", diagnosis.message(&pod)),
            Outcome::Failed(why) => panic!("{why}"),
        }
    }
    let mut line = format!("{shape:<9} {nodes:>6} {pods:>7} ");
    let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    let columns = [
        micros(part(&mut cycles, 50)),
        micros(part(&mut cycles, 99)),
        micros(part(&mut updates, 50)),
    ];
    let [p50, p99, update] = columns;
    let _ = write!(line, "{p50:>11} {p99:>9} {update:>12}");
    let a_node = (with_nodes - empty) / nodes;
    let a_pod = (with_pods - with_nodes) / pods;
    let _ = write!(line, " {a_node:>6} B {a_pod:>5} B");
    line
}

fn profile(views: &Views) -> Profile {
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
        let answer = Err(std::io::Error::other("nobody answers"));
        std::future::ready::<Result<http::Response<kube::client::Body>, _>>(answer)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers");
    let _entered = runtime.enter();
    Plan::new(DEFAULT_SCHEDULER).build(&Client::new(nobody, "default"), views)
}

fn fill(cache: &mut Cache, traits: &TraitsTable, shape: &str, nodes: usize, pods: usize) {
    for number in 0..pods {
        let node = format!("node-{:05}", number % nodes);
        let pod = Arc::new(pod(shape, number, Some(&node)));
        cache.set_pod(Arc::new(PodInfo::sharing(pod, traits)));
    }
}

/// A time that this many of a hundred do not pass.
fn part(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// Bytes of memory of its own that the process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}

fn node(number: usize) -> Node {
    let name = format!("node-{number:05}");
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "AgentReady", "message": "all is well",
            "lastHeartbeatTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z"})
    };
    let sizes =
        json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "110"});
    from(json!({
        "metadata": {"name": name, "uid": format!("0d3c3b34-{number:012}"), "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64",
            "topology.kubernetes.io/zone": format!("zone-{}", number % ZONES),
        }},
        "spec": {"podCIDR": "10.42.0.0/24", "podCIDRs": ["10.42.0.0/24"]},
        "status": {
            "allocatable": sizes, "capacity": sizes,
            "conditions": [condition("Ready", "True"), condition("MemoryPressure", "False"),
                condition("DiskPressure", "False"), condition("PIDPressure", "False")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"architecture": "arm64", "bootID": "b", "containerRuntimeVersion": "coracle",
                "kernelVersion": "6.1.0", "kubeProxyVersion": "", "kubeletVersion": "v1.36.0",
                "machineID": "m", "operatingSystem": "linux", "osImage": "Debian", "systemUUID": "s"},
        },
    }))
}

fn labels(shape: &str, name: &str) -> Value {
    let mut labels = json!({"app": "bench", "pod-template-hash": "5d4f8c7b9"});
    if shape == "named" {
        labels["statefulset.kubernetes.io/pod-name"] = name.into();
    }
    labels
}

/// As a Deployment's pods are; a named one is a StatefulSet's, which is like no other.
fn pod(shape: &str, number: usize, node: Option<&str>) -> Pod {
    let name = format!("bench-5d4f8c7b9-{number:05}");
    let mut spec = json!({
        "serviceAccountName": "default", "schedulerName": "default-scheduler", "priority": 0,
        "containers": [{
            "name": "main", "image": "registry.example/team/bench:v1.2.3",
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "POD", "value": "bench"}],
            "volumeMounts": [{"name": "kube-api-access", "readOnly": true,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        }],
        "volumes": [{"name": "kube-api-access", "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt"}}]}}],
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}],
    });
    let ours = json!({"matchLabels": {"app": "bench"}});
    match shape {
        "spread" => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "labelSelector": ours,
                "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]);
        }
        "affinity" | "named" => {
            let term = |key: &str| json!({"labelSelector": ours, "topologyKey": key});
            spec["affinity"] = json!({
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    [term("topology.kubernetes.io/zone")]},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                    [{"weight": 1, "podAffinityTerm": term("kubernetes.io/hostname")}]},
            });
        }
        _ => {}
    }
    let mut status = json!({"phase": "Pending"});
    if let Some(node) = node {
        spec["nodeName"] = node.into();
        let conditions = [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        ];
        let conditions = conditions.map(|kind| {
            json!({"type": kind, "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"})
        });
        status = json!({"phase": "Running", "podIP": "10.42.0.9", "hostIP": "10.0.0.1",
            "startTime": "2030-01-01T00:00:00Z", "conditions": conditions,
            "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "started": true,
                "image": "registry.example/team/bench:v1.2.3", "imageID": "sha256:0123456789abcdef",
                "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}}}]});
    }
    from(json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("5f0c2a4e-7a11-4c1e-9d1b-{number:012}"),
            "generateName": "bench-5d4f8c7b9-", "resourceVersion": "123456",
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": labels(shape, &name),
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "bench-5d4f8c7b9",
                "uid": "7f0c2a4e-7a11-4c1e-9d1b-000000000000", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": spec, "status": status,
    }))
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object of its kind")
}
