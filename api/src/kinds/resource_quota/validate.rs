//! What is wrong with a quota: names of resources, quantities, scopes.

use super::list_path;
use crate::field::{ErrorList, FieldError, Path};
use crate::object::Object;
use crate::pod_spec::validate::resources;
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
/// Scopes that are there or not, and have no values.
const PLAIN_SCOPES: [&str; 5] = [
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
];
const OPPOSITES: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

pub fn spec(quota: &Object) -> ErrorList {
    let mut errors = list(quota, ["spec", "hard"]);
    let spec = quota.get(&["spec"]).unwrap_or(&Value::Null);
    let hard: Vec<&str> = json::entries(spec, "hard").map(|(name, _)| name).collect();
    let hard: Vec<&str> = hard
        .into_iter()
        .filter(|name| resources::is_quota_resource(name))
        .collect();
    errors.extend(scopes(json::get(spec, "scopes"), &hard));
    if let Some(selector) = json::some(spec, "scopeSelector") {
        errors.extend(scope_selector(selector, json::get(spec, "scopes"), &hard));
    }
    errors
}

pub fn status(quota: &Object) -> ErrorList {
    let mut errors = list(quota, ["status", "hard"]);
    errors.extend(list(quota, ["status", "used"]));
    errors
}

/// What a quota covers never changes.
pub fn same_scopes(new: &Object, old: &Object) -> ErrorList {
    let set = |quota: &Object| -> BTreeSet<String> {
        let scopes = quota.list(&["spec", "scopes"]).iter();
        scopes
            .filter_map(|scope| Some(scope.as_str()?.to_owned()))
            .collect()
    };
    if set(new) == set(old) {
        return ErrorList::new();
    }
    let value = new.get(&["spec", "scopes"]).cloned().unwrap_or_default();
    let path = Path::root("spec").child("scopes");
    vec![FieldError::invalid(&path, value, names::IMMUTABLE)]
}

fn list(quota: &Object, at: [&str; 2]) -> ErrorList {
    let path = list_path(at);
    let list = quota.get(&at).and_then(Value::as_object);
    let mut errors = ErrorList::new();
    for (name, value) in list.into_iter().flatten() {
        let path = path.key(name);
        errors.extend(resources::standard_name(name, &path));
        if !name.contains('/') && !resources::is_quota_resource(name) {
            let detail = "must be a standard resource for quota";
            errors.push(FieldError::invalid(&path, name.as_str(), detail));
        }
        errors.extend(resources::amount(name, value, &path));
    }
    errors
}

/// Whether a scope says anything about a resource.
fn applies(scope: &str, resource: &str) -> bool {
    let compute = matches!(
        resource,
        "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
    );
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => resource == "pods" || compute,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => true,
    }
}

fn scopes(all: &Value, hard: &[&str]) -> ErrorList {
    let path = Path::root("spec").child("scopes");
    let mut errors = ErrorList::new();
    let names: Vec<&str> = all
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut wrong = |detail: &str| errors.push(FieldError::invalid(&path, all.clone(), detail));
    for scope in &names {
        if !SCOPES.contains(scope) {
            wrong("unsupported scope");
        }
        for _ in hard.iter().filter(|resource| !applies(scope, resource)) {
            wrong("unsupported scope applied to resource");
        }
    }
    for pair in OPPOSITES {
        if pair.iter().all(|scope| names.contains(scope)) {
            wrong("conflicting scopes");
        }
    }
    errors
}

fn scope_selector(selector: &Value, scopes: &Value, hard: &[&str]) -> ErrorList {
    let path = Path::root("spec")
        .child("scopeSelector")
        .child("matchExpressions");
    let mut errors = ErrorList::new();
    let expressions = json::list(selector, "matchExpressions");
    for expression in expressions {
        let scope = json::text(expression, "scopeName");
        if !SCOPES.contains(&scope) {
            let path = path.child("scopeName");
            errors.push(FieldError::invalid(&path, scope, "unsupported scope"));
        }
        for _ in hard.iter().filter(|resource| !applies(scope, resource)) {
            let detail = "unsupported scope applied to resource";
            let error = FieldError::invalid(&path, selector.clone(), detail);
            errors.push(error.as_go("io.k8s.api.core.v1.ScopeSelector"));
        }
        errors.extend(operator(expression, scope, &path));
    }
    let names: Vec<&str> = expressions
        .iter()
        .map(|expression| json::text(expression, "scopeName"))
        .collect();
    for pair in OPPOSITES {
        if pair.iter().all(|scope| names.contains(scope)) {
            let detail = "conflicting scopes";
            errors.push(FieldError::invalid(&path, scopes.clone(), detail));
        }
    }
    errors
}

fn operator(expression: &Value, scope: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let operator = json::text(expression, "operator");
    if PLAIN_SCOPES.contains(&scope) && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or \
                      ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(
            &path.child("operator"),
            operator,
            detail,
        ));
    }
    let values = json::list(expression, "values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            let value = Value::from(values);
            errors.push(FieldError::invalid(&path.child("values"), value, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), other, detail));
        }
    }
    errors
}
