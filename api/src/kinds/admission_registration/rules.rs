//! Rules: which operations on which resources a webhook or a policy is asked about.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::{json, label_selector, names};
use serde_json::{Value, json};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// What is deleted cannot be changed on the way.
const CHANGING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
pub const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const EVERY: &str = "*";

/// Fills in the scope of each rule of a list.
pub fn default_scopes(value: &mut Value, field: &str) {
    for rule in json::list_mut(value, field) {
        json::default(rule, "scope", EVERY);
    }
}

pub fn default_match_resources(value: &mut Value, field: &str) {
    let Some(resources) = json::object_mut(value, field) else {
        return;
    };
    json::default(resources, "matchPolicy", "Equivalent");
    json::default(resources, "namespaceSelector", json!({}));
    json::default(resources, "objectSelector", json!({}));
    default_scopes(resources, "resourceRules");
    default_scopes(resources, "excludeResourceRules");
}

fn has_every(list: &[Value]) -> bool {
    list.iter().any(|one| one == EVERY)
}

/// A list that is not empty, and of which `*` stands alone.
fn every_is_alone(list: &[Value], what: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if list.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if list.len() > 1 && has_every(list) {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path, list, detail));
    }
    errors
}

pub fn with_operations(rule: &Value, path: &Path) -> ErrorList {
    let operations = json::list(rule, "operations");
    let of_operations = path.child("operations");
    let mut errors = every_is_alone(operations, "operations", &of_operations);
    for (index, operation) in operations.iter().enumerate() {
        let operation = operation.as_str().unwrap_or("");
        checks::one_of(
            &mut errors,
            operation,
            OPERATIONS,
            &of_operations.index(index),
        );
    }
    errors.extend(every_is_alone(
        json::list(rule, "apiGroups"),
        "API groups",
        &path.child("apiGroups"),
    ));
    let (versions, of_versions) = (json::list(rule, "apiVersions"), path.child("apiVersions"));
    errors.extend(every_is_alone(versions, "API versions", &of_versions));
    for (index, version) in versions.iter().enumerate() {
        if version == "" {
            errors.push(FieldError::required(&of_versions.index(index), ""));
        }
    }
    errors.extend(resources(
        json::list(rule, "resources"),
        &path.child("resources"),
    ));
    if let Some(scope) = json::some(rule, "scope") {
        let scope = scope.as_str().unwrap_or("");
        checks::one_of(&mut errors, scope, SCOPES, &path.child("scope"));
    }
    errors
}

/// Resources and subresources: `pods`, `pods/log`, `pods/*`, `*/scale`, `*/*`.
fn resources(resources: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let (mut all_of, mut of_all) = (Vec::new(), Vec::new());
    let mut ends_plain = false;
    for (index, resource) in resources.iter().enumerate() {
        let text = resource.as_str().unwrap_or("");
        let path = path.index(index);
        let Some((resource, subresource)) = text.split_once('/') else {
            if text.is_empty() {
                errors.push(FieldError::required(&path, ""));
            } else {
                // As upstream, it is the last one that counts.
                ends_plain = text != EVERY;
            }
            continue;
        };
        if all_of.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(FieldError::invalid(&path, text, detail));
        }
        if of_all.contains(&subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {text}");
            errors.push(FieldError::invalid(&path, text, detail));
        }
        if subresource == EVERY {
            all_of.push(resource);
        }
        if resource == EVERY {
            of_all.push(subresource);
        }
    }
    let has = |wanted: &str| resources.iter().any(|one| one == wanted);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources, detail));
    }
    if has(EVERY) && ends_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources, detail));
    }
    errors
}

fn named(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let names = json::list(rule, "resourceNames");
    for (index, name) in names.iter().enumerate() {
        let path = path.child("resourceNames").index(index);
        let text = name.as_str().unwrap_or("");
        checks::each(&mut errors, &path, text, names::path_segment(text));
        if names[..index].contains(name) {
            errors.push(FieldError::duplicate(&path, text));
        }
    }
    errors.extend(with_operations(rule, path));
    errors
}

/// What a policy or its binding matches.
pub fn match_resources(resources: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match json::some(resources, "matchPolicy") {
        None => errors.push(FieldError::required(&path.child("matchPolicy"), "")),
        Some(policy) => checks::one_of(
            &mut errors,
            policy.as_str().unwrap_or(""),
            MATCH_POLICIES,
            &path.child("matchPolicy"),
        ),
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let path = path.child(field);
        match json::some(resources, field) {
            None => errors.push(FieldError::required(&path, "")),
            Some(selector) => errors.extend(label_selector::validate(selector, &path)),
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in json::list(resources, field).iter().enumerate() {
            errors.extend(named(rule, &path.child(field).index(index)));
        }
    }
    errors
}

/// No rule of a policy that changes is about a deletion.
pub fn changing_operations(resources: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = path.child("resourceRules").child("operations");
    for rule in json::list(resources, "resourceRules") {
        for operation in json::list(rule, "operations") {
            let operation = operation.as_str().unwrap_or("");
            checks::one_of(&mut errors, operation, CHANGING_OPERATIONS, &path);
        }
    }
    errors
}
