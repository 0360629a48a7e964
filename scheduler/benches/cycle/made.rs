//! Nodes and pods as clusters have them, for benches and what memory is taken.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Map, Value, json};

/// Nodes are in this many zones.
const ZONES: usize = 3;
/// As many as a kubelet reports of a node.
const IMAGES: usize = 50;
/// There are so many in all; nodes have different ones.
const IMAGES_IN_ALL: usize = 400;

fn labels_of_node(number: usize, name: &str) -> Value {
    let zone = format!("region-1-{}", number % ZONES);
    json!({
        "beta.kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/instance-type": "c7g.16xlarge",
        "failure-domain.beta.kubernetes.io/region": "region-1",
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.io/arch": "arm64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "c7g.16xlarge",
        "topology.kubernetes.io/region": "region-1", "topology.kubernetes.io/zone": zone,
        "node-role.kubernetes.io/worker": "",
    })
}

/// Each by its digest and by its tag. Every third node has the image of the pods.
fn images(number: usize) -> Vec<Value> {
    let images = (0..IMAGES).map(|place| {
        let which = (number * 7 + place * 3) % IMAGES_IN_ALL;
        let (name, tag) = match place {
            0 if number.is_multiple_of(3) => ("bench".to_owned(), "v1.2.3".to_owned()),
            _ => (format!("app-{which:03}"), format!("v1.{which}.0")),
        };
        json!({
            "names": [format!("registry.example/team/{name}@sha256:{which:064x}"),
                format!("registry.example/team/{name}:{tag}")],
            "sizeBytes": 40_000_000 + which * 100_000,
        })
    });
    images.collect()
}

fn conditions(number: usize) -> Vec<Value> {
    let kinds = [
        ("NetworkUnavailable", "False", "RouteCreated"),
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ];
    let minute = number % 60;
    let conditions = kinds.map(|(kind, status, reason)| {
        json!({"type": kind, "status": status, "reason": reason,
            "message": "kubelet is posting ready status or has sufficient of what there is",
            "lastHeartbeatTime": format!("2030-01-01T00:{minute:02}:00Z"),
            "lastTransitionTime": "2030-01-01T00:00:00Z"})
    });
    conditions.into()
}

pub fn node(number: usize) -> Node {
    let name = format!("node-{number:05}");
    let sizes = json!({"cpu": "64", "memory": "263919440Ki", "ephemeral-storage": "104845292Ki",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0", "pods": "110"});
    let network = format!("10.{}.{}.0/24", 40 + number / 250, number % 250);
    let mut annotations = Map::new();
    annotations.insert("node.alpha.kubernetes.io/ttl".to_owned(), "0".into());
    let attach = "volumes.kubernetes.io/controller-managed-attach-detach";
    annotations.insert(attach.to_owned(), "true".into());
    from(json!({
        "metadata": {
            "name": name, "uid": format!("0d3c3b34-5a1f-4c1e-9d1b-{number:012}"),
            "resourceVersion": "123456", "creationTimestamp": "2030-01-01T00:00:00Z",
            "annotations": annotations, "labels": labels_of_node(number, &name),
        },
        "spec": {"podCIDR": network, "podCIDRs": [network], "providerID": format!("x:///{name}")},
        "status": {
            "allocatable": sizes, "capacity": sizes, "conditions": conditions(number),
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images(number),
            "nodeInfo": {"architecture": "arm64", "bootID": "d6b6a1a5-0c5b-4fd4-bb5f-0123456789ab",
                "containerRuntimeVersion": "containerd://2.0.0", "kernelVersion": "6.1.0",
                "kubeProxyVersion": "", "kubeletVersion": "v1.36.0",
                "machineID": "ec2f5e0c9f6b4c0c8d1a0123456789ab", "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12", "systemUUID": "ec2f5e0c-9f6b-4c0c-8d1a-0123456789ab"},
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
pub fn pod(shape: &str, number: usize, node: Option<&str>) -> Pod {
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
