//! Who runs where, and what leads from an object to a node: its pods, what they refer to, the
//! volumes bound to their claims with the secrets of these, attachments and slices of the node.
//!
//! An index of edges, not of objects: it answers whether there is a path and keeps nothing else.

mod volume; // What a persistent volume leads to.

use coracle_api::json;
use coracle_api::object::{Object, ObjectKey};
use coracle_api::pod_spec::MIRROR;
use parking_lot::RwLock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use volume::Volume;

/// A kind of object that a pod can refer to by name, in its own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Referred {
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
    ResourceClaim,
}

/// A kind of object that names its node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placed {
    VolumeAttachment,
    ResourceSlice,
}

type References = BTreeSet<(Referred, String)>;

#[derive(Debug, Default)]
pub struct NodeGraph {
    index: RwLock<Index>,
}

#[derive(Debug, Default)]
struct Index {
    node_of: BTreeMap<ObjectKey, String>,
    pods: BTreeMap<String, BTreeMap<ObjectKey, References>>,
    /// Volumes with a claim, by name.
    volumes: BTreeMap<String, Volume>,
    placed: BTreeMap<(Placed, String), String>,
}

impl NodeGraph {
    /// Takes over one object of a followed resource: its new state, or none when it is gone.
    pub fn apply(&self, plural: &str, key: &ObjectKey, object: Option<&Object>) {
        match plural {
            "pods" => self.pod(key, object),
            "persistentvolumes" => self.volume(key, object),
            "volumeattachments" => self.place(Placed::VolumeAttachment, key, object),
            _ => self.place(Placed::ResourceSlice, key, object),
        }
    }

    fn pod(&self, key: &ObjectKey, pod: Option<&Object>) {
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

    fn volume(&self, key: &ObjectKey, volume: Option<&Object>) {
        let mut index = self.index.write();
        match volume.and_then(Volume::of) {
            Some(volume) => drop(index.volumes.insert(key.name.clone(), volume)),
            None => drop(index.volumes.remove(&key.name)),
        }
    }

    fn place(&self, kind: Placed, key: &ObjectKey, object: Option<&Object>) {
        let node = object.map_or("", |object| object.str(&["spec", "nodeName"]));
        let mut index = self.index.write();
        let place = (kind, key.name.clone());
        match node {
            "" => drop(index.placed.remove(&place)),
            node => drop(index.placed.insert(place, node.to_owned())),
        }
    }

    pub fn runs(&self, node: &str, pod: &ObjectKey) -> bool {
        let index = self.index.read();
        index.node_of.get(pod).is_some_and(|own| own == node)
    }

    /// True when the object is of this node by its own word.
    pub fn is_placed(&self, node: &str, kind: Placed, name: &str) -> bool {
        let index = self.index.read();
        let place = (kind, name.to_owned());
        index.placed.get(&place).is_some_and(|own| own == node)
    }

    /// True when a pod of the node refers to the object, or a volume that one uses does.
    pub fn refers(&self, node: &str, kind: Referred, object: &ObjectKey) -> bool {
        let index = self.index.read();
        index.refers(node, kind, object)
            || kind == Referred::Secret
                && index.volumes.values().any(|volume| {
                    volume.secrets.contains(object)
                        && index.refers(node, Referred::Claim, &volume.claim)
                })
    }

    /// True when a pod of the node uses the claim that the volume is bound to.
    pub fn uses_volume(&self, node: &str, name: &str) -> bool {
        let index = self.index.read();
        let volume = index.volumes.get(name);
        volume.is_some_and(|volume| index.refers(node, Referred::Claim, &volume.claim))
    }
}

impl Index {
    fn refers(&self, node: &str, kind: Referred, object: &ObjectKey) -> bool {
        let wanted = (kind, object.name.clone());
        self.pods.get(node).is_some_and(|pods| {
            pods.iter()
                .any(|(key, found)| key.namespace == object.namespace && found.contains(&wanted))
        })
    }
}

/// What a pod refers to. A mirror pod, which a node made by itself, refers to nothing.
pub fn references(pod: &Object) -> References {
    if pod.annotation(MIRROR).is_some() {
        References::new()
    } else {
        names_in(pod)
    }
}

/// What a pod names, whoever made it.
pub fn names_in(pod: &Object) -> References {
    let mut found = References::new();
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
    for claim in pod.list(&["spec", "resourceClaims"]) {
        add(Referred::ResourceClaim, resource_claim(pod, claim));
    }
    let extended = ["status", "extendedResourceClaimStatus", "resourceClaimName"];
    add(Referred::ResourceClaim, pod.str(&extended));
    found
}

/// The claim's own name, or that of the one made from its template, empty as long as there is none.
fn resource_claim<'a>(pod: &'a Object, claim: &'a Value) -> &'a str {
    let named = json::text(claim, "resourceClaimName");
    if !named.is_empty() {
        return named;
    }
    let name = json::text(claim, "name");
    pod.list(&["status", "resourceClaimStatuses"])
        .iter()
        .find(|status| json::text(status, "name") == name)
        .map_or("", |status| json::text(status, "resourceClaimName"))
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
        "cinder",
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
