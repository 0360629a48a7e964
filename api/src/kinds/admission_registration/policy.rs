//! What policies that judge and policies that change have in common.

use super::expressions::{self, Scope};
use super::{FAILURE_POLICIES, rules};
use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names};
use serde_json::{Value, json};

/// Fills in the spec, which there always is.
pub fn default(object: &mut Object) {
    json::default_in(object.root_mut(), "spec", json!({}));
    if let Some(spec) = object.get_mut(&["spec"]) {
        json::default(spec, "failurePolicy", "Fail");
        rules::default_match_resources(spec, "matchConstraints");
    }
}

/// What kind parameters are of, as a cell.
pub fn param_kind_cell(object: &Object) -> Value {
    match object.get(&["spec", "paramKind"]) {
        Some(kind @ Value::Object(_)) => {
            let [version, kind] = ["apiVersion", "kind"].map(|field| json::text(kind, field));
            format!("{version}/{kind}").into()
        }
        _ => "<unset>".into(),
    }
}

/// Everything in a spec up to its variables, and what expressions behind those may name.
pub fn head(spec: &Value, changes: bool, path: &Path) -> (ErrorList, Scope) {
    let mut errors = ErrorList::new();
    match json::some(spec, "failurePolicy") {
        None => errors.push(FieldError::required(&path.child("failurePolicy"), "")),
        Some(policy) => checks::one_of(
            &mut errors,
            policy.as_str().unwrap_or(""),
            FAILURE_POLICIES,
            &path.child("failurePolicy"),
        ),
    }
    let params = json::some(spec, "paramKind");
    if let Some(kind) = params {
        errors.extend(param_kind(kind, &path.child("paramKind")));
    }
    let constraints = path.child("matchConstraints");
    match json::some(spec, "matchConstraints") {
        None => errors.push(FieldError::required(&constraints, "")),
        Some(resources) => {
            errors.extend(rules::match_resources(resources, &constraints));
            if json::list(resources, "resourceRules").is_empty() {
                let path = constraints.child("resourceRules");
                errors.push(FieldError::required(&path, ""));
            }
            if changes {
                errors.extend(rules::changing_operations(resources, &constraints));
            }
        }
    }
    let budget = Budget::default();
    errors.extend(expressions::match_conditions(
        json::list(spec, "matchConditions"),
        params.is_some(),
        &budget,
        &path.child("matchConditions"),
    ));
    let (found, scope) = expressions::variables(
        json::list(spec, "variables"),
        params.is_some(),
        &budget,
        &path.child("variables"),
    );
    errors.extend(found);
    (errors, scope)
}

fn param_kind(kind: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let version = json::text(kind, "apiVersion");
    let of_version = path.child("apiVersion");
    if version.is_empty() {
        errors.push(FieldError::required(&of_version, ""));
    } else {
        errors.extend(group_version(version, &of_version));
    }
    let (kind, path) = (json::text(kind, "kind"), path.child("kind"));
    if kind.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        let details = names::dns_1035_label(&kind.to_lowercase());
        if !details.is_empty() {
            let details = details.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {details}");
            errors.push(FieldError::invalid(&path, kind, detail));
        }
    }
    errors
}

fn group_version(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut wrong = |value: &str, detail: String| {
        errors.push(FieldError::invalid(path, value, detail));
    };
    let (group, version) = match text.split('/').collect::<Vec<_>>()[..] {
        ["", ""] => ("", ""),
        [version] => ("", version),
        [group, version] => (group, version),
        _ => {
            wrong(text, format!("unexpected GroupVersion string: {text}"));
            return errors;
        }
    };
    let details = names::dns_subdomain(group);
    if !group.is_empty() && !details.is_empty() {
        wrong(group, details.join(","));
    }
    let details = names::dns_1035_label(version);
    if version.is_empty() {
        wrong(text, "version must be specified".to_owned());
    } else if !details.is_empty() {
        wrong(version, details.join(","));
    }
    errors
}
