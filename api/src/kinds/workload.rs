//! What the kinds that own pods by a template share: columns of the template, and the checks of
//! selector, template and replica counts.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::wide;
use crate::object::Object;
use crate::pod_spec;
use crate::resource::Column;
use crate::{json, label_selector};
use serde_json::Value;

pub const CONTAINERS: Column = wide(
    "Containers",
    "string",
    "Names of each container in the template.",
);
pub const IMAGES: Column = wide(
    "Images",
    "string",
    "Images referenced by each container in the template.",
);
pub const SELECTOR: Column = wide("Selector", "string", "Which pods it counts as its own.");

/// The cells of `CONTAINERS` and `IMAGES`.
pub fn container_cells(object: &Object) -> [Value; 2] {
    container_cells_of(object.get(&["spec"]).unwrap_or(&Value::Null))
}

/// Of a spec that has a template.
pub fn container_cells_of(spec: &Value) -> [Value; 2] {
    let containers = json::list(json::at(spec, &["template", "spec"]), "containers");
    ["name", "image"].map(|field| {
        let texts: Vec<&str> = containers.iter().map(|c| json::text(c, field)).collect();
        texts.join(",").into()
    })
}

/// The cell of a selector that may be empty.
pub fn selector_cell(text: &str) -> Value {
    if text.is_empty() { "<none>" } else { text }.into()
}

/// Names of a workload go into the names of its pods.
pub fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = name_warnings(object, "Pod names and hostnames");
    warnings.extend(template_warnings(object));
    warnings
}

pub fn name_warnings(object: &Object, used_in: &str) -> Vec<String> {
    let details = crate::names::dns_label(object.name());
    if object.name().is_empty() || details.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS \
         label is recommended: [{}]",
        details.join(" ")
    )]
}

/// What the template would be warned of as a pod.
pub fn template_warnings(object: &Object) -> Vec<String> {
    let path = Path::root("spec").child("template");
    let template = object.get(&["spec", "template"]).unwrap_or(&Value::Null);
    pod_spec::warnings::of_template(template, &path)
}

/// `spec.selector`, and the template that it must match. `spec` is the object's.
pub fn selector_and_template(spec: &Value, old_spec: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let selector_path = path.child("selector");
    let template = json::get(spec, "template");
    let template_path = path.child("template");
    match json::some(spec, "selector") {
        None => {
            errors.push(FieldError::required(&selector_path, ""));
            // No selector matches nothing.
            errors.push(labels_error(template, &template_path));
            errors.extend(replica_template(template, old_spec, &template_path));
        }
        Some(selector) => {
            let of_selector = label_selector::validate(selector, &selector_path);
            let valid = of_selector.is_empty();
            errors.extend(of_selector);
            if label_selector::is_empty(selector) {
                let detail = "empty selector is invalid for deployment";
                let error = FieldError::invalid(&selector_path, selector.clone(), detail);
                errors.push(error.as_go(checks::LABEL_SELECTOR));
            }
            if !valid {
                let detail = "invalid label selector";
                let error = FieldError::invalid(&selector_path, selector.clone(), detail);
                errors.push(error.as_go(checks::LABEL_SELECTOR));
                return errors;
            }
            let labels = json::at(template, &["metadata", "labels"]);
            if !label_selector::matches(selector, labels) {
                errors.push(labels_error(template, &template_path));
            }
            errors.extend(replica_template(template, old_spec, &template_path));
        }
    }
    errors
}

pub fn labels_error(template: &Value, path: &Path) -> FieldError {
    FieldError::invalid(
        &path.child("metadata").child("labels"),
        json::at(template, &["metadata", "labels"]).clone(),
        "`selector` does not match template `labels`",
    )
}

/// A template whose pods are replaced when they end.
pub fn replica_template(template: &Value, old_spec: Option<&Value>, path: &Path) -> ErrorList {
    let old_template = old_spec.map(|spec| json::get(spec, "template"));
    let mut errors = pod_spec::validate::template(template, old_template, path);
    always_restarts(&mut errors, template, "ReplicaSet", path);
    errors
}

/// Pods that are replaced when they end restart their containers, for as long as they are there.
pub fn always_restarts(errors: &mut ErrorList, template: &Value, kind: &str, path: &Path) {
    let spec = json::get(template, "spec");
    let policy = json::text(spec, "restartPolicy");
    let path = path.child("spec");
    if policy != "Always" {
        let path = path.child("restartPolicy");
        errors.push(FieldError::not_supported(&path, policy, &["Always"]));
    }
    if json::has(spec, "activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        let path = path.child("activeDeadlineSeconds");
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// Counts of a status: none negative, none of `parts` above `status.replicas`. `ready` is how
/// upstream calls the count of ready pods.
pub fn counts(status: &Value, all: &[&str], parts: &[&str], ready: &str) -> ErrorList {
    let path = Path::root("status");
    let mut errors = ErrorList::new();
    for name in all {
        checks::nonnegative(&mut errors, status, name, &path);
    }
    let count = |name: &str| json::int(status, name).unwrap_or(0);
    for name in parts {
        if count(name) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            errors.push(FieldError::invalid(&path.child(name), count(name), detail));
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let path = path.child("availableReplicas");
        let detail = format!("cannot be greater than {ready}");
        errors.push(FieldError::invalid(
            &path,
            count("availableReplicas"),
            detail,
        ));
    }
    errors
}

/// The count of collisions of a status, which only grows.
pub fn collisions(new: &Object, old: &Object) -> ErrorList {
    let collisions = |object: &Object| object.i64(&["status", "collisionCount"]);
    let count = collisions(new).unwrap_or(0);
    if collisions(old).is_some_and(|before| count < before) {
        let path = Path::root("status").child("collisionCount");
        return vec![FieldError::invalid(&path, count, "cannot be decremented")];
    }
    ErrorList::new()
}
