//! What a persistent volume leads to: its claim, and the secrets that a node mounts it with. Pure.

use coracle_api::json;
use coracle_api::object::{Object, ObjectKey};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) claim: ObjectKey,
    pub(super) secrets: Vec<ObjectKey>,
}

/// Whose secret's namespace is the claim's where none is given.
const IN_CLAIM_NAMESPACE: [&str; 5] = ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"];
/// Whose secret's namespace must be given.
const IN_GIVEN_NAMESPACE: [&str; 2] = ["cinder", "storageos"];
/// What a node needs of CSI; the other two are for controllers.
const CSI_NODE: [&str; 3] = [
    "nodePublishSecretRef",
    "nodeStageSecretRef",
    "nodeExpandSecretRef",
];

impl Volume {
    /// Nothing for a volume without a claim.
    pub(super) fn of(volume: &Object) -> Option<Self> {
        let spec = volume.get(&["spec"])?;
        let claim = json::some(spec, "claimRef")?;
        let claim = ObjectKey::new(json::text(claim, "namespace"), json::text(claim, "name"));
        let secrets = secrets(spec, &claim.namespace);
        Some(Self { claim, secrets })
    }
}

fn secrets(spec: &Value, claim_namespace: &str) -> Vec<ObjectKey> {
    let mut found = Vec::new();
    let mut add = |namespace: &str, name: &str, default: &str| {
        let namespace = match namespace {
            "" => default,
            own => own,
        };
        if !name.is_empty() && !namespace.is_empty() {
            found.push(ObjectKey::new(namespace, name));
        }
    };
    let azure = json::get(spec, "azureFile");
    let namespace = json::text(azure, "secretNamespace");
    add(namespace, json::text(azure, "secretName"), claim_namespace);
    let mut by_reference = |reference: &Value, default: &str| {
        let namespace = json::text(reference, "namespace");
        add(namespace, json::text(reference, "name"), default);
    };
    for plugin in IN_CLAIM_NAMESPACE {
        by_reference(json::at(spec, &[plugin, "secretRef"]), claim_namespace);
    }
    for plugin in IN_GIVEN_NAMESPACE {
        by_reference(json::at(spec, &[plugin, "secretRef"]), "");
    }
    for reference in CSI_NODE {
        by_reference(json::at(spec, &["csi", reference]), "");
    }
    found
}
