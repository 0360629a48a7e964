//! The volume in which a pod finds its token, the cluster's CA and its namespace. Pure, but for
//! the volume's name.

use crate::verbs::write::generate_name;
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::{Value, json};

/// Volumes of this name are taken for what is made here.
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// So that the server knows a token of these volumes, and is kind to who reads it once.
const TOKEN_SECONDS: i64 = 3607;
const FILE_MODE: i64 = 0o644;

/// Mounts the volume into every container that has nothing at its path.
pub fn mount(pod: &mut Object) {
    let volumes = pod.list(&["spec", "volumes"]);
    let mut names = volumes.iter().map(|volume| json::text(volume, "name"));
    let known = names.find(|name| name.starts_with(VOLUME_PREFIX));
    let known = known.map(str::to_owned);
    let name = known
        .clone()
        .unwrap_or_else(|| generate_name(VOLUME_PREFIX));
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut(&["spec", list]).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut mounts = json::list(container, "volumeMounts").to_vec();
            if mounts
                .iter()
                .any(|mount| json::text(mount, "mountPath") == MOUNT_PATH)
            {
                continue;
            }
            mounts.push(json!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH }));
            container["volumeMounts"] = Value::Array(mounts);
            is_mounted = true;
        }
    }
    if is_mounted && known.is_none() {
        let mut volumes = pod.list(&["spec", "volumes"]).to_vec();
        volumes.push(volume(&name));
        pod.set(&["spec", "volumes"], Value::Array(volumes));
    }
}

fn volume(name: &str) -> Value {
    let ca = json!({ "key": "ca.crt", "path": "ca.crt" });
    let namespace = json!({
        "path": "namespace",
        "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
    });
    json!({
        "name": name,
        "projected": {
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [ca] } },
                { "downwardAPI": { "items": [namespace] } },
            ],
            "defaultMode": FILE_MODE,
        },
    })
}
