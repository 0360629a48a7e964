//! Storage classes: how volumes of a kind are made. Nothing but the mount options, the expansion
//! and the topologies changes after the create.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{checks, storage};
use crate::meta_validate::label_name;
use crate::object::Object;
use crate::pod_spec::warnings;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub const ROW: Resource = Resource {
    short_names: &["sc"],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "StorageClass",
            plural: "storageclasses",
            singular: "storageclass",
            schema: "io.k8s.api.storage.v1.StorageClass",
        },
        &StorageClass,
    )
};

/// Either marks the class of claims that name none.
pub const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Provisioner", "string", "Who makes the volumes."),
    column(
        "ReclaimPolicy",
        "string",
        "What becomes of a volume whose claim is gone.",
    ),
    column(
        "VolumeBindingMode",
        "string",
        "Whether a volume is made at once or when a pod needs it.",
    ),
    column(
        "AllowVolumeExpansion",
        "string",
        "Whether volumes can be made larger.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct StorageClass;

impl Rules for StorageClass {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "reclaimPolicy", "Delete");
        json::default_in(object.root_mut(), "volumeBindingMode", "Immediate");
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        class(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = class(new);
        let (new, old) = (new.to_value(), old.to_value());
        for field in [
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ] {
            checks::immutable(&mut errors, &new, &old, field, &Path::default());
        }
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let is_default = DEFAULT_ANNOTATIONS
            .iter()
            .any(|name| object.annotation(name) == Some("true"));
        let mark = if is_default { " (default)" } else { "" };
        vec![
            format!("{}{mark}", object.name()).into(),
            object.str(&["provisioner"]).into(),
            object.str(&["reclaimPolicy"]).into(),
            object.str(&["volumeBindingMode"]).into(),
            object.bool(&["allowVolumeExpansion"]).into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let path = Path::root("allowedTopologies");
        let mut all = Vec::new();
        for (index, term) in object.list(&["allowedTopologies"]).iter().enumerate() {
            let path = path.index(index).child("matchLabelExpressions");
            for (index, expression) in json::list(term, "matchLabelExpressions").iter().enumerate()
            {
                let key = json::text(expression, "key");
                let path = path.index(index).child("key");
                all.extend(warnings::deprecated_node_label(key, false, &path));
            }
        }
        all
    }
}

fn class(object: &Object) -> ErrorList {
    let mut errors = storage::provisioner(object.str(&["provisioner"]), &Path::root("provisioner"));
    let parameters = object.get(&["parameters"]).unwrap_or(&Value::Null);
    errors.extend(storage::parameters(
        parameters,
        true,
        &Path::root("parameters"),
    ));
    let policy = object.str(&["reclaimPolicy"]);
    if !policy.is_empty() {
        let path = Path::root("reclaimPolicy");
        checks::one_of(&mut errors, policy, &["Delete", "Retain"], &path);
    }
    checks::one_of(
        &mut errors,
        object.str(&["volumeBindingMode"]),
        &["Immediate", "WaitForFirstConsumer"],
        &Path::root("volumeBindingMode"),
    );
    errors.extend(topologies(object.list(&["allowedTopologies"])));
    errors
}

/// Label keys, and the values they may have.
type Term = BTreeMap<String, BTreeSet<String>>;

fn topologies(terms: &[Value]) -> ErrorList {
    let path = Path::root("allowedTopologies");
    let mut errors = ErrorList::new();
    // Upstream compares with as many empty terms as there are terms, before the first.
    let mut seen = vec![Term::new(); terms.len()];
    for (index, value) in terms.iter().enumerate() {
        let path = path.index(index).child("matchLabelExpressions");
        let term = topology_term(value, &path, &mut errors);
        for _ in seen.iter().filter(|other| **other == term) {
            errors.push(FieldError::duplicate(&path, ""));
        }
        seen.push(term);
    }
    errors
}

fn topology_term(term: &Value, path: &Path, errors: &mut ErrorList) -> Term {
    let mut made = Term::new();
    for (index, expression) in json::list(term, "matchLabelExpressions").iter().enumerate() {
        let path = path.index(index);
        let values = json::list(expression, "values");
        let values_path = path.child("values");
        if values.is_empty() {
            errors.push(FieldError::required(&values_path, ""));
        }
        let mut set = BTreeSet::new();
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            if !set.insert(value.to_owned()) {
                errors.push(FieldError::duplicate(&values_path.index(index), value));
            }
        }
        let key = json::text(expression, "key");
        errors.extend(label_name(key, &path.child("key")));
        if made.contains_key(key) {
            errors.push(FieldError::duplicate(&path.child("key"), key));
        }
        made.insert(key.to_owned(), set);
    }
    made
}

#[cfg(test)]
mod tests;
