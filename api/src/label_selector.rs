//! Validation of a LabelSelector document, and what it matches.
//!
//! The text form of selectors in queries is not this module's.

use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::{invalid_each, label_name, labels};
use crate::{json, names};
use serde_json::Value;

/// What is wrong with a LabelSelector.
pub fn validate(selector: &Value, path: &Path) -> ErrorList {
    let mut errors = labels(
        json::get(selector, "matchLabels"),
        &path.child("matchLabels"),
    );
    let expressions = path.child("matchExpressions");
    for (index, expression) in json::list(selector, "matchExpressions").iter().enumerate() {
        errors.extend(requirement(expression, &expressions.index(index)));
    }
    errors
}

fn requirement(requirement: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = json::list(requirement, "values");
    let operator = json::text(requirement, "operator");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    errors.extend(label_name(
        json::text(requirement, "key"),
        &path.child("key"),
    ));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or("");
        let path = path.child("values").index(index);
        invalid_each(&mut errors, &path, value, names::label_value(value));
    }
    errors
}

/// True when nothing is asked: such a selector matches everything.
pub fn is_empty(selector: &Value) -> bool {
    json::entries(selector, "matchLabels").next().is_none()
        && json::list(selector, "matchExpressions").is_empty()
}

/// Whether labels (a map of strings) satisfy the selector.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    json::entries(selector, "matchLabels").all(|(key, value)| labels.get(key) == Some(value))
        && json::list(selector, "matchExpressions")
            .iter()
            .all(|requirement| requirement_matches(requirement, labels))
}

fn requirement_matches(requirement: &Value, labels: &Value) -> bool {
    let label = labels.get(json::text(requirement, "key"));
    let listed = label.is_some_and(|label| json::list(requirement, "values").contains(label));
    match json::text(requirement, "operator") {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}
