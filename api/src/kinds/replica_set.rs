//! Replica sets: a number of equal pods.

use crate::field::{ErrorList, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{checks, prepare, workload};
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["rs"],
    categories: &["all"],
    subresources: &[row::SCALE, row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "ReplicaSet",
            plural: "replicasets",
            singular: "replicaset",
            schema: "io.k8s.api.apps.v1.ReplicaSet",
        },
        &ReplicaSet,
    )
};

/// The columns of replica sets and of replication controllers.
pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("Desired", "integer", "How many pods there should be."),
    column("Current", "integer", "How many pods there are."),
    column("Ready", "integer", "How many pods are ready."),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR,
];

pub fn cells(object: &Object, selector: &str, now: i64) -> Vec<Value> {
    let [names, images] = workload::container_cells(object);
    vec![
        object.name().into(),
        object.i64(&["spec", "replicas"]).unwrap_or(0).into(),
        object.i64(&["status", "replicas"]).unwrap_or(0).into(),
        object.i64(&["status", "readyReplicas"]).unwrap_or(0).into(),
        print::age_of(object, now),
        names,
        images,
        selector.into(),
    ]
}

/// `status.replicas` as a selectable field.
pub fn field(object: &Object, name: &str) -> String {
    match name {
        "status.replicas" => object.i64(&["status", "replicas"]).unwrap_or(0).to_string(),
        _ => String::new(),
    }
}

pub fn status(object: &Object) -> ErrorList {
    const ALL: &[&str] = &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let status = object.get(&["status"]).unwrap_or(&Value::Null);
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    workload::counts(status, ALL, &parts, "readyReplicas")
}

#[derive(Debug)]
struct ReplicaSet;

impl Rules for ReplicaSet {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = json::spec_mut(object.root_mut()) {
            json::default(spec, "replicas", 1);
            json::default(spec, "template", json!({}));
            pod_spec::defaults::template(&mut spec["template"]);
        }
        if object.get(&["status"]).is_none_or(Value::is_null) {
            object.set(&["status"], json!({ "replicas": 0 }));
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "replicas": 0 }));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        spec(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        if part == Part::Status {
            return status(new);
        }
        let mut errors = spec(new, Some(old));
        let specs = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
        checks::immutable_as(
            &mut errors,
            checks::LABEL_SELECTOR,
            specs[0],
            specs[1],
            "selector",
            &Path::root("spec"),
        );
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let selector = object.get(&["spec", "selector"]).unwrap_or(&Value::Null);
        let text = scale::selector_text(selector);
        cells(object, if text.is_empty() { "<none>" } else { &text }, now)
    }

    fn field(&self, object: &Object, name: &str) -> String {
        field(object, name)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        workload::warnings(object)
    }
}

fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let old_spec = old.and_then(|old| old.get(&["spec"]));
    let mut errors = ErrorList::new();
    checks::nonnegative(&mut errors, spec, "replicas", &path);
    checks::nonnegative(&mut errors, spec, "minReadySeconds", &path);
    errors.extend(workload::selector_and_template(spec, old_spec, &path));
    errors
}

#[cfg(test)]
mod tests;
