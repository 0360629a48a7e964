//! What an access review must say, with upstream's errors. Pure.

use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::json;
use coracle_api::names;
use coracle_api::object::Object;
use serde_json::{Value, json};

const NEEDS_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const TAKES_NO_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

pub(super) fn validate(plural: &str, review: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::root("spec");
    let spec = review.get(&["spec"]).unwrap_or(&json::NULL);
    let resource = json::some(spec, "resourceAttributes");
    let other = json::some(spec, "nonResourceAttributes");
    match (resource, other) {
        (Some(_), Some(other)) => errors.push(FieldError::invalid(
            &path.child("nonResourceAttributes"),
            as_told(other),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            &path.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if plural != "selfsubjectaccessreviews"
        && json::text(spec, "user").is_empty()
        && json::list(spec, "groups").is_empty()
    {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", why));
    }
    if let Some(resource) = resource {
        let path = Path::root("spec.resourceAttributes");
        let fields = json::some(resource, "fieldSelector");
        selector(fields, &path.child("fieldSelector"), field, &mut errors);
        let labels = json::some(resource, "labelSelector");
        selector(labels, &path.child("labelSelector"), label, &mut errors);
    }
    metadata(plural, review, &mut errors);
    if plural == "localsubjectaccessreviews" {
        local(review, resource, other, &mut errors);
    }
    errors
}

/// Upstream's errors show its own names of the fields.
fn as_told(other: &Value) -> Value {
    json!({ "Path": json::text(other, "path"), "Verb": json::text(other, "verb") })
}

/// A review is no object: it has no name and no labels.
fn metadata(plural: &str, review: &Object, errors: &mut ErrorList) {
    let is_local = plural == "localsubjectaccessreviews";
    let found = review.get(&["metadata"]).and_then(Value::as_object);
    let said = found.into_iter().flatten().any(|(field, value)| {
        let is_free = field == "managedFields" || is_local && field == "namespace";
        !is_free && !json::is_empty(value)
    });
    if said {
        let why = match is_local {
            true => "must be empty except for namespace",
            false => "must be empty",
        };
        let value = review.get(&["metadata"]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&Path::root("metadata"), value, why));
    }
}

fn selector(
    selector: Option<&Value>,
    path: &Path,
    requirement: fn(&Value, &Path, &mut ErrorList),
    errors: &mut ErrorList,
) {
    let Some(selector) = selector else { return };
    let raw = json::text(selector, "rawSelector");
    let requirements = json::list(selector, "requirements");
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(&path.child("rawSelector"), raw, why));
    }
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&path.child("requirements"), why));
    }
    for (index, one) in requirements.iter().enumerate() {
        requirement(one, &path.child("requirements").index(index), errors);
    }
}

/// An operator that is not known passes: newer clients are answered as far as we understand them.
fn values(one: &Value, path: &Path, errors: &mut ErrorList) {
    let has_values = !json::list(one, "values").is_empty();
    match json::text(one, "operator") {
        "In" | "NotIn" if !has_values => {
            errors.push(FieldError::required(&path.child("values"), NEEDS_VALUES));
        }
        "Exists" | "DoesNotExist" if has_values => {
            errors.push(FieldError::forbidden(
                &path.child("values"),
                TAKES_NO_VALUES,
            ));
        }
        _ => {}
    }
}

fn field(one: &Value, path: &Path, errors: &mut ErrorList) {
    if json::text(one, "key").is_empty() {
        errors.push(FieldError::required(
            &path.child("key"),
            "must be specified",
        ));
    }
    values(one, path, errors);
}

fn label(one: &Value, path: &Path, errors: &mut ErrorList) {
    values(one, path, errors);
    let key = json::text(one, "key");
    for fault in names::qualified_name(key) {
        errors.push(FieldError::invalid(&path.child("key"), key, fault));
    }
    for (index, value) in json::list(one, "values").iter().enumerate() {
        let value = value.as_str().unwrap_or("");
        for fault in names::label_value(value) {
            let path = path.child("values").index(index);
            errors.push(FieldError::invalid(&path, value, fault));
        }
    }
}

fn local(review: &Object, resource: Option<&Value>, other: Option<&Value>, errors: &mut ErrorList) {
    if let Some(resource) = resource
        && json::text(resource, "namespace") != review.namespace()
    {
        errors.push(FieldError::invalid(
            &Path::root("spec.resourceAttributes.namespace"),
            json::text(resource, "namespace"),
            "must match metadata.namespace",
        ));
    }
    if let Some(other) = other {
        errors.push(FieldError::invalid(
            &Path::root("spec.nonResourceAttributes"),
            as_told(other),
            "disallowed on this kind of request",
        ));
    }
}
