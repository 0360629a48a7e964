//! Replication controllers: replica sets of old, with a plain map as selector.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names};
use crate::kinds::{checks, prepare, replica_set, workload};
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["rc"],
    categories: &["all"],
    subresources: &[row::SCALE, row::STATUS],
    selectable_fields: &["status.replicas"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ReplicationController",
            plural: "replicationcontrollers",
            singular: "replicationcontroller",
            schema: "io.k8s.api.core.v1.ReplicationController",
        },
        &ReplicationController,
    )
};

#[derive(Debug)]
struct ReplicationController;

impl Rules for ReplicationController {
    /// Selector and labels default to the labels of the template.
    fn default(&self, object: &mut Object) {
        let template_labels = object
            .get(&["spec", "template", "metadata", "labels"])
            .filter(|labels| labels.is_object())
            .cloned();
        if let Some(template_labels) = template_labels {
            for path in [&["spec", "selector"][..], &["metadata", "labels"]] {
                if object.get(path).is_none_or(json::is_empty) {
                    object.set(path, template_labels.clone());
                }
            }
        }
        if let Some(spec) = object.get_mut(&["spec"]).filter(|spec| spec.is_object()) {
            json::default(spec, "replicas", 1);
            if let Some(template) = json::object_mut(spec, "template") {
                pod_spec::defaults::template(template);
            }
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
        match part {
            Part::Status => replica_set::status(new),
            Part::Main | Part::Other(_) => spec(new, Some(old)),
        }
    }

    fn columns(&self) -> &'static [Column] {
        replica_set::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let selector = object.get(&["spec", "selector"]).unwrap_or(&Value::Null);
        let text = scale::selector_text(selector);
        let text = if text.is_empty() { "<none>" } else { &text };
        replica_set::cells(object, text, now)
    }

    fn field(&self, object: &Object, name: &str) -> String {
        replica_set::field(object, name)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        workload::warnings(object)
    }
}

fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let mut errors = ErrorList::new();
    checks::nonnegative(&mut errors, spec, "minReadySeconds", &path);
    let selector = json::get(spec, "selector");
    if json::is_empty(selector) {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    checks::nonnegative(&mut errors, spec, "replicas", &path);
    let template_path = path.child("template");
    let Some(template) = json::some(spec, "template") else {
        errors.push(FieldError::required(&template_path, ""));
        return errors;
    };
    let template_labels = json::at(template, &["metadata", "labels"]);
    let matches =
        json::entries(spec, "selector").all(|(key, value)| template_labels.get(key) == Some(value));
    if !matches {
        errors.push(FieldError::invalid(
            &template_path.child("metadata").child("labels"),
            template_labels.clone(),
            "`selector` does not match template `labels`",
        ));
    }
    let old_spec = old.and_then(|old| old.get(&["spec"]));
    errors.extend(workload::replica_template(
        template,
        old_spec,
        &template_path,
    ));
    errors
}

#[cfg(test)]
mod tests;
