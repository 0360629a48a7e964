//! Persistent volume claims: what a user asks of storage. Once made, a claim changes only in its
//! size and its class of attributes, and only while it is bound.

pub mod validate;

use crate::field::{ErrorList, Path};
use crate::kinds::row::{self, Names, column, wide};
use crate::kinds::{prepare, storage};
use crate::object::Object;
use crate::pod_spec::{defaults, warnings};
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["pvc"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "PersistentVolumeClaim",
            plural: "persistentvolumeclaims",
            singular: "persistentvolumeclaim",
            schema: "io.k8s.api.core.v1.PersistentVolumeClaim",
        },
        &Claim,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Status", "string", "Whether a volume is bound."),
    column("Volume", "string", "The volume."),
    column("Capacity", "string", "How large the volume is."),
    column("Access Modes", "string", "How the volume may be mounted."),
    column("StorageClass", "string", "The class of the claim."),
    column(
        "VolumeAttributesClass",
        "string",
        "The class of the attributes asked for.",
    ),
    row::AGE,
    wide("VolumeMode", "string", "A file system or a block device."),
];

const UNSET: &str = "<unset>";

#[derive(Debug)]
struct Claim;

impl Rules for Claim {
    fn default(&self, object: &mut Object) {
        for part in ["spec", "status"] {
            json::default_in(object.root_mut(), part, json!({}));
        }
        object.get_mut(&["spec"]).map(defaults::claim_spec);
        if let Some(status) = object.get_mut(&["status"]) {
            json::default_text(status, "phase", "Pending");
            for list in ["capacity", "allocatedResources"] {
                if let Some(list) = json::object_mut(status, list) {
                    defaults::round_quantities(list);
                }
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "phase": "Pending" }));
        if let Some(spec) = object.get_mut(&["spec"]) {
            data_sources(spec, None);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        if part == Part::Main
            && let Some(spec) = new.get_mut(&["spec"])
        {
            data_sources(spec, old.get(&["spec"]));
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        validate::spec(spec, None, &Path::root("spec"))
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new),
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
        let volume = object.str(&["spec", "volumeName"]);
        let (capacity, modes) = if volume.is_empty() {
            (String::new(), String::new())
        } else {
            let capacity = object.get(&["status", "capacity"]).unwrap_or(&Value::Null);
            (
                storage::quantity(capacity, "storage").to_string(),
                storage::short_modes(object.list(&["status", "accessModes"])),
            )
        };
        vec![
            object.name().into(),
            phase(object).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(object).into(),
            or_unset("volumeAttributesClassName").into(),
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
        if object.annotation(storage::BETA_CLASS).is_some() {
            all.push(format!(
                "metadata.annotations[{}]: deprecated since v1.8; use \"storageClassName\" \
                 attribute instead",
                storage::BETA_CLASS
            ));
        }
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        all.extend(warnings::claim_spec(spec, &Path::root("spec")));
        all
    }
}

/// `status.phase`, or that the object is being deleted.
pub fn phase(object: &Object) -> &str {
    if object.is_deleting() {
        "Terminating"
    } else {
        object.str(&["status", "phase"])
    }
}

/// The class by the old annotation, or by the field.
pub fn class(object: &Object) -> &str {
    object
        .annotation(storage::BETA_CLASS)
        .unwrap_or_else(|| object.str(&["spec", "storageClassName"]))
}

/// Where the data comes from has an old field, which knows claims and snapshots alone, and a new
/// one for anything; both show the same.
fn data_sources(spec: &mut Value, old: Option<&Value>) {
    let in_use = |field: &str| old.is_some_and(|old| json::has(old, field));
    let namespace = json::at(spec, &["dataSourceRef", "namespace"]);
    let crosses = namespace.as_str().is_some_and(|name| !name.is_empty());
    let Some(map) = spec.as_object_mut() else {
        return;
    };
    map.retain(|name, value| !(name.starts_with("dataSource") && value.is_null()));
    // A source in another namespace is behind a gate that is shut.
    if crosses && !in_use("dataSourceRef") {
        map.remove("dataSourceRef");
    }
    let is_free = !in_use("dataSource") && !in_use("dataSourceRef");
    if is_free && !map.contains_key("dataSourceRef") && !map.get("dataSource").is_some_and(is_old) {
        map.remove("dataSource");
    }
    match (map.get("dataSource"), map.get("dataSourceRef")) {
        (Some(source), None) => {
            let source = source.clone();
            map.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(reference)) if !crosses => {
            let mut source = reference.clone();
            source.as_object_mut().map(|map| map.remove("namespace"));
            map.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// What the old field can name.
fn is_old(source: &Value) -> bool {
    matches!(
        (json::text(source, "apiGroup"), json::text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

#[cfg(test)]
mod tests;
