//! What a pod that a node made by itself may not refer to: anything of the API. Pure.

use crate::authorize::node_graph::{Referred, names_in};
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::Value;

/// Volumes that the node makes by itself.
const OWN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];
/// Volumes that stand for something of the API, and for what.
const OTHER_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];
const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    (
        "serviceAccountToken",
        "serviceaccounts (via projected volumes)",
    ),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// What is referred to, in upstream's words; an error for a volume of no known kind.
pub fn of_mirror_pod(pod: &Object) -> Result<Option<&'static str>, String> {
    let referred = names_in(pod);
    let refers = |kind| referred.iter().any(|(own, _)| *own == kind);
    for (kind, what) in [
        (Referred::ServiceAccount, "serviceaccounts"),
        (Referred::Secret, "secrets"),
        (Referred::ConfigMap, "configmaps"),
    ] {
        if refers(kind) {
            return Ok(Some(what));
        }
    }
    if !pod.list(&["spec", "resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in pod.list(&["spec", "volumes"]) {
        if let Some(what) = of_volume(volume)? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

fn of_volume(volume: &Value) -> Result<Option<&'static str>, String> {
    let find = |list: &[(&'static str, &'static str)], value: &Value| {
        let mut list = list.iter();
        list.find(|(field, _)| json::has(value, field))
            .map(|(_, what)| *what)
    };
    let name = json::text(volume, "name");
    if OWN_VOLUMES.iter().any(|own| json::has(volume, own)) {
        return Ok(None);
    }
    if let Some(what) = find(&OTHER_VOLUMES, volume) {
        return Ok(Some(what));
    }
    if !json::has(volume, "projected") {
        return Err(format!("unknown volume type for volume  {name:?}"));
    }
    for source in json::list(json::get(volume, "projected"), "sources") {
        if let Some(what) = find(&PROJECTED, source) {
            return Ok(Some(what));
        }
        if !json::has(source, "downwardAPI") {
            return Err(format!("unknown source for projected volume {name:?}"));
        }
    }
    Ok(None)
}
