//! Namespaces: they begin Active, hold the finalizer `kubernetes` until they are empty, and are
//! finished through `namespaces/finalize`.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::prepare;
use crate::kinds::row::{self, Names, column};
use crate::meta_validate::finalizer_name;
use crate::object::Object;
use crate::resource::{
    Column, NameRule, Part, Requester, Resource, Rules, Subresource, SubresourceKind,
};
use crate::{json, print};
use serde_json::{Value, json};

/// Label that every namespace carries, with its own name.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const FINALIZER: &str = "kubernetes";

pub const ROW: Resource = Resource {
    short_names: &["ns"],
    verbs: &[
        "create", "delete", "get", "list", "patch", "update", "watch",
    ],
    subresources: &[
        Subresource {
            name: "finalize",
            kind: SubresourceKind::Part,
            body: None,
            verbs: &["update"],
        },
        row::STATUS,
    ],
    // `name` is there for old clients.
    selectable_fields: &["status.phase"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "Namespace",
            plural: "namespaces",
            singular: "namespace",
            schema: "io.k8s.api.core.v1.Namespace",
        },
        &Namespace,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Status", "string", "The status of the namespace"),
    row::AGE,
];

#[derive(Debug)]
struct Namespace;

fn label_with_name(object: &mut Object) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.set(&["metadata", "labels", NAME_LABEL], name.into());
    }
}

impl Rules for Namespace {
    fn default(&self, object: &mut Object) {
        label_with_name(object);
        if object.str(&["status", "phase"]).is_empty() {
            object.set(&["status", "phase"], "Active".into());
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "phase": "Active" }));
        let mut finalizers = object.list(&["spec", "finalizers"]).to_vec();
        if !finalizers.iter().any(|name| name == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        object.set(&["spec", "finalizers"], finalizers.into());
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        if part == Part::Main {
            prepare::keep(new, old, &["spec", "finalizers"]);
        }
    }

    /// A generated name is known only now.
    fn stamp(
        &self,
        object: &mut Object,
        _old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        _now: &str,
    ) {
        label_with_name(object);
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        spec_finalizers(object)
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => phase(new),
            Part::Main | Part::Other(_) => spec_finalizers(new),
        }
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    fn begin_delete(&self, object: &mut Object) {
        object.set(&["status", "phase"], "Terminating".into());
    }

    fn is_taken_apart(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["status", "phase"]).into(),
            print::age_of(object, now),
        ]
    }

    fn field(&self, object: &Object, name: &str) -> String {
        match name {
            "name" => object.name().to_owned(),
            "status.phase" => object.str(&["status", "phase"]).to_owned(),
            _ => String::new(),
        }
    }
}

/// A finalizer without a domain must be one of the known ones.
fn spec_finalizers(object: &Object) -> ErrorList {
    let path = Path::root("spec").child("finalizers");
    let mut errors = ErrorList::new();
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    for finalizer in json::list(spec, "finalizers") {
        let finalizer = finalizer.as_str().unwrap_or("");
        errors.extend(finalizer_name(finalizer, &path));
        let standard = ["kubernetes", "orphan", "foregroundDeletion"];
        if !finalizer.contains('/') && !standard.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path, finalizer, detail));
        }
    }
    errors
}

fn phase(object: &Object) -> ErrorList {
    let path = Path::root("status").child("Phase");
    let phase = object.str(&["status", "phase"]);
    let (expected, detail) = if object.is_deleting() {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase == expected {
        ErrorList::new()
    } else {
        vec![FieldError::invalid(&path, phase, detail)]
    }
}

#[cfg(test)]
mod tests;
