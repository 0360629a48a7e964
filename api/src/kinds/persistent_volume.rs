//! Persistent volumes: storage of the cluster, bound to one claim. What a volume is made of never
//! changes.

pub mod validate;

use crate::field::{ErrorList, Path};
use crate::kinds::persistent_volume_claim::{class, phase};
use crate::kinds::row::{self, Names, column, wide};
use crate::kinds::{prepare, storage};
use crate::object::Object;
use crate::pod_spec::{defaults, warnings};
use crate::resource::{Column, Part, Requester, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["pv"],
    subresources: &[row::STATUS],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "PersistentVolume",
            plural: "persistentvolumes",
            singular: "persistentvolume",
            schema: "io.k8s.api.core.v1.PersistentVolume",
        },
        &Volume,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Capacity", "string", "How large the volume is."),
    column("Access Modes", "string", "How the volume may be mounted."),
    column(
        "Reclaim Policy",
        "string",
        "What becomes of the volume when its claim is gone.",
    ),
    column("Status", "string", "Whether a claim is bound."),
    column("Claim", "string", "The claim."),
    column("StorageClass", "string", "The class of the volume."),
    column(
        "VolumeAttributesClass",
        "string",
        "The class of the attributes.",
    ),
    column("Reason", "string", "Why the volume is in a bad way."),
    row::AGE,
    wide("VolumeMode", "string", "A file system or a block device."),
];

const UNSET: &str = "<unset>";
const TRANSITION: [&str; 2] = ["status", "lastPhaseTransitionTime"];

/// Annotations with a field of their own now.
const OLD_ANNOTATIONS: [(&str, &str); 2] = [
    (
        storage::BETA_CLASS,
        "deprecated since v1.8; use \"storageClassName\" attribute instead",
    ),
    (
        validate::BETA_MOUNT_OPTIONS,
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];

/// Sources that no longer work, and the name that the warning gives them.
const OLD_SOURCES: [(&str, &str, &str); 6] = [
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

#[derive(Debug)]
struct Volume;

impl Rules for Volume {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        json::default_in(object.root_mut(), "status", json!({}));
        if let Some(status) = object.get_mut(&["status"]) {
            json::default_text(status, "phase", "Pending");
        }
        if let Some(spec) = object.get_mut(&["spec"]) {
            json::default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
            volume_spec(spec);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "phase": "Pending" }));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    /// The server notes when the phase changes, unless the client does.
    fn stamp(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        part: Part<'_>,
        _by: &Requester<'_>,
        now: &str,
    ) {
        let Some(old) = old else {
            object.set(&TRANSITION, now.into());
            return;
        };
        if part != Part::Status {
            return;
        }
        let same_phase = object.str(&["status", "phase"]) == old.str(&["status", "phase"]);
        let time = object.str(&TRANSITION).to_owned();
        if same_phase && time.is_empty() {
            prepare::keep(object, old, &TRANSITION);
        } else if !same_phase && (time.is_empty() || time == old.str(&TRANSITION)) {
            object.set(&TRANSITION, now.into());
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::volume(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => ErrorList::new(),
            Part::Main | Part::Other(_) => validate::update(new, old),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let or_unset = |field: &str| match object.get(&["spec", field]).and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => UNSET.to_owned(),
        };
        let claim = match object.get(&["spec", "claimRef"]) {
            Some(claim) if claim.is_object() => {
                let [namespace, name] = ["namespace", "name"].map(|f| json::text(claim, f));
                format!("{namespace}/{name}")
            }
            _ => String::new(),
        };
        let capacity = object.get(&["spec", "capacity"]).unwrap_or(&Value::Null);
        vec![
            object.name().into(),
            storage::quantity(capacity, "storage").to_string().into(),
            storage::short_modes(object.list(&["spec", "accessModes"])).into(),
            object
                .str(&["spec", "persistentVolumeReclaimPolicy"])
                .into(),
            phase(object).into(),
            claim.into(),
            class(object).into(),
            or_unset("volumeAttributesClassName").into(),
            object.str(&["status", "reason"]).into(),
            print::age_of(object, now),
            or_unset("volumeMode").into(),
        ]
    }

    fn field(&self, object: &Object, name: &str) -> String {
        match name {
            "name" => object.name().to_owned(),
            _ => String::new(),
        }
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let mut all = Vec::new();
        for (name, text) in OLD_ANNOTATIONS {
            if object.annotation(name).is_some() {
                all.push(format!("metadata.annotations[{name}]: {text}"));
            }
        }
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let path = Path::root("spec");
        if json::text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
            all.push(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
                 Instead, the recommended approach is to use dynamic provisioning."
                    .to_owned(),
            );
        }
        let required = json::at(spec, &["nodeAffinity", "required"]);
        let terms_path = path.child("nodeAffinity").child("required");
        all.extend(warnings::node_selector(required, &terms_path));
        for (field, shown, text) in OLD_SOURCES {
            if json::has(spec, field) {
                all.push(format!("{}: {text}", path.child(shown)));
            }
        }
        all
    }
}

/// Defaults of a PersistentVolumeSpec, wherever it stands.
pub fn volume_spec(spec: &mut Value) {
    json::default(spec, "volumeMode", "Filesystem");
    if let Some(capacity) = json::object_mut(spec, "capacity") {
        defaults::round_quantities(capacity);
    }
    defaults::remote_sources(spec);
}

#[cfg(test)]
mod tests;
