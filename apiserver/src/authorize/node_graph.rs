//! Which pods run on which node, and what they refer to.

use coracle_api::json;
use coracle_api::object::{Object, ObjectKey};
use parking_lot::RwLock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A kind of object that a pod can refer to by name, in its own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Referred {
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
}

type References = BTreeSet<(Referred, String)>;

/// Index by node of the pods bound to it.
#[derive(Debug, Default)]
pub struct NodePods {
    index: RwLock<Index>,
}

#[derive(Debug, Default)]
struct Index {
    node_of: BTreeMap<ObjectKey, String>,
    pods: BTreeMap<String, BTreeMap<ObjectKey, References>>,
}

impl NodePods {
    pub fn apply(&self, key: &ObjectKey, pod: Option<&Object>) {
        let bound = pod
            .map(|pod| (pod.str(&["spec", "nodeName"]), pod))
            .filter(|(node, _)| !node.is_empty());
        let mut index = self.index.write();
        if let Some(old) = index.node_of.remove(key)
            && let Some(pods) = index.pods.get_mut(&old)
        {
            pods.remove(key);
            if pods.is_empty() {
                index.pods.remove(&old);
            }
        }
        if let Some((node, pod)) = bound {
            index.node_of.insert(key.clone(), node.to_owned());
            let pods = index.pods.entry(node.to_owned()).or_default();
            pods.insert(key.clone(), references(pod));
        }
    }

    pub fn runs(&self, node: &str, pod: &ObjectKey) -> bool {
        let index = self.index.read();
        index.node_of.get(pod).is_some_and(|own| own == node)
    }

    /// True when a pod of the node refers to the object.
    pub fn refers(&self, node: &str, kind: Referred, object: &ObjectKey) -> bool {
        let index = self.index.read();
        let wanted = (kind, object.name.clone());
        index.pods.get(node).is_some_and(|pods| {
            pods.iter()
                .any(|(key, found)| key.namespace == object.namespace && found.contains(&wanted))
        })
    }
}

/// What a pod refers to. A mirror pod, which a node made by itself, refers to nothing.
pub fn references(pod: &Object) -> References {
    let mut found = References::new();
    if pod.annotation("kubernetes.io/config.mirror").is_some() {
        return found;
    }
    let mut add = |kind: Referred, name: &str| {
        if !name.is_empty() {
            found.insert((kind, name.to_owned()));
        }
    };
    add(
        Referred::ServiceAccount,
        pod.str(&["spec", "serviceAccountName"]),
    );
    for secret in pod.list(&["spec", "imagePullSecrets"]) {
        add(Referred::Secret, json::text(secret, "name"));
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in pod.list(&["spec", list]) {
            of_container(container, &mut add);
        }
    }
    for volume in pod.list(&["spec", "volumes"]) {
        of_volume(pod.name(), volume, &mut add);
    }
    found
}

fn of_container(container: &Value, add: &mut impl FnMut(Referred, &str)) {
    for source in json::list(container, "envFrom") {
        let name = |field| json::text(json::get(source, field), "name");
        add(Referred::Secret, name("secretRef"));
        add(Referred::ConfigMap, name("configMapRef"));
    }
    for variable in json::list(container, "env") {
        let name = |field| json::text(json::at(variable, &["valueFrom", field]), "name");
        add(Referred::Secret, name("secretKeyRef"));
        add(Referred::ConfigMap, name("configMapKeyRef"));
    }
}

fn of_volume(pod_name: &str, volume: &Value, add: &mut impl FnMut(Referred, &str)) {
    let text = |path: &[&str], field| json::text(json::at(volume, path), field);
    add(Referred::Secret, text(&["secret"], "secretName"));
    add(Referred::ConfigMap, text(&["configMap"], "name"));
    add(
        Referred::Claim,
        text(&["persistentVolumeClaim"], "claimName"),
    );
    add(
        Referred::Secret,
        text(&["csi", "nodePublishSecretRef"], "name"),
    );
    for plugin in [
        "rbd",
        "cephfs",
        "flexVolume",
        "scaleIO",
        "iscsi",
        "storageos",
    ] {
        add(Referred::Secret, text(&[plugin, "secretRef"], "name"));
    }
    add(Referred::Secret, text(&["azureFile"], "secretName"));
    if json::has(volume, "ephemeral") {
        let claim = format!("{pod_name}-{}", json::text(volume, "name"));
        add(Referred::Claim, &claim);
    }
    for source in json::list(json::get(volume, "projected"), "sources") {
        let name = |field| json::text(json::get(source, field), "name");
        add(Referred::Secret, name("secret"));
        add(Referred::ConfigMap, name("configMap"));
    }
}
