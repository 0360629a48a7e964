//! Where the API keeps the kinds of a world, and uids that are known only when an object is made.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kind, group and version, plural, whether in a namespace. What others refer to comes later.
const KINDS: [(&str, &str, &str, bool); 17] = [
    ("Pod", "v1", "pods", true),
    ("Service", "v1", "services", true),
    (
        "ReplicationController",
        "v1",
        "replicationcontrollers",
        true,
    ),
    ("ReplicaSet", "apps/v1", "replicasets", true),
    (
        "PodDisruptionBudget",
        "policy/v1",
        "poddisruptionbudgets",
        true,
    ),
    (
        "PersistentVolumeClaim",
        "v1",
        "persistentvolumeclaims",
        true,
    ),
    (
        "CSIStorageCapacity",
        "storage.k8s.io/v1",
        "csistoragecapacities",
        true,
    ),
    (
        "VolumeAttachment",
        "storage.k8s.io/v1",
        "volumeattachments",
        false,
    ),
    ("CSINode", "storage.k8s.io/v1", "csinodes", false),
    ("PersistentVolume", "v1", "persistentvolumes", false),
    ("Node", "v1", "nodes", false),
    ("Namespace", "v1", "namespaces", false),
    ("ServiceAccount", "v1", "serviceaccounts", true),
    (
        "PriorityClass",
        "scheduling.k8s.io/v1",
        "priorityclasses",
        false,
    ),
    ("RuntimeClass", "node.k8s.io/v1", "runtimeclasses", false),
    ("StorageClass", "storage.k8s.io/v1", "storageclasses", false),
    ("CSIDriver", "storage.k8s.io/v1", "csidrivers", false),
];
/// Of the kinds, those that every world has its own of.
const OF_A_WORLD: usize = 11;

pub fn collection(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let known = KINDS.iter().find(|known| known.0 == kind);
    let (_, version, plural, is_namespaced) = known.expect("a kind of the table");
    match is_namespaced {
        true => {
            let namespace = object["metadata"]["namespace"].as_str();
            of_namespace(version, plural, namespace.unwrap_or("default"))
        }
        false => format!("{}/{plural}", root(version)),
    }
}

pub fn collections(namespaces: &[&str]) -> Vec<String> {
    let mut paths = Vec::new();
    for (_, version, plural, is_namespaced) in &KINDS[..OF_A_WORLD] {
        if *is_namespaced {
            let own = namespaces.iter();
            paths.extend(own.map(|namespace| of_namespace(version, plural, namespace)));
        } else {
            paths.push(format!("{}/{plural}", root(version)));
        }
    }
    paths
}

fn of_namespace(version: &str, plural: &str, namespace: &str) -> String {
    format!("{}/namespaces/{namespace}/{plural}", root(version))
}

fn root(version: &str) -> String {
    match version.contains('/') {
        true => format!("/apis/{version}"),
        false => format!("/api/{version}"),
    }
}

/// With the version of its kind, and the uids of what it names by kind and name.
pub fn resolved(object: &Value, uids: &BTreeMap<(String, String), String>) -> Value {
    let mut object = object.clone();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let known = KINDS.iter().find(|known| known.0 == kind);
    object["apiVersion"] = json!(known.expect("a kind of the table").1);
    let uid_of = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        uids.get(&(text("kind"), text("name"))).cloned()
    };
    let owners = object.pointer_mut("/metadata/ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = json!(uid_of(owner));
    }
    // The claim is made first, so that the volume can name it whole.
    if let Some(claim) = object.pointer_mut("/spec/claimRef") {
        claim["uid"] = json!(uid_of(claim));
    }
    object
}
