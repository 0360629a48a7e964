//! Where a pod may run: tolerations, affinities, spread over topology.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::{invalid_each, label_name};
use crate::{json, label_selector, names};
use serde_json::Value;
use std::collections::BTreeSet;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The effect of a taint or, where it may be empty, of a toleration.
pub fn taint_effect(effect: &str, may_be_empty: bool, path: &Path) -> ErrorList {
    const SUPPORTED: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut errors = ErrorList::new();
    if !(effect.is_empty() && may_be_empty) {
        checks::required_one_of(&mut errors, effect, SUPPORTED, path);
    }
    errors
}

pub fn tolerations(tolerations: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| json::text(toleration, field));
        let operator_path = path.child("operator");
        if !key.is_empty() {
            errors.extend(label_name(key, &path.child("key")));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            errors.push(FieldError::invalid(&operator_path, operator, detail));
        }
        if json::has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let details = names::label_value(value);
                if !details.is_empty() {
                    let detail = details.join(";");
                    errors.push(FieldError::invalid(&operator_path, value, detail));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator_path, value, detail));
            }
            "Exists" => {}
            other => {
                // The comparisons are named, and not taken: upstream's gate for them is shut.
                let all: &[&str] = &["Equal", "Exists", "Lt", "Gt"];
                let supported = if matches!(other, "Lt" | "Gt") {
                    all
                } else {
                    &all[..2]
                };
                errors.push(FieldError::not_supported(&operator_path, other, supported));
            }
        }
        errors.extend(taint_effect(effect, true, &path.child("effect")));
    }
    errors
}

pub fn affinity(affinity: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(node) = json::some(affinity, "nodeAffinity") {
        errors.extend(node_affinity(node, &path.child("nodeAffinity")));
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = json::some(affinity, field) {
            errors.extend(pod_affinity(pods, &path.child(field)));
        }
    }
    errors
}

fn node_affinity(affinity: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(selector) = json::some(affinity, REQUIRED) {
        errors.extend(node_selector(selector, &path.child(REQUIRED)));
    }
    for (index, weighted) in json::list(affinity, PREFERRED).iter().enumerate() {
        let path = path.child(PREFERRED).index(index);
        errors.extend(weight(weighted, &path));
        let term = json::get(weighted, "preference");
        errors.extend(node_term(term, false, &path.child("preference")));
    }
    errors
}

/// A NodeSelector: at least one term.
pub fn node_selector(selector: &Value, path: &Path) -> ErrorList {
    let path = path.child("nodeSelectorTerms");
    let terms = json::list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        let detail = "must have at least one node selector term";
        return vec![FieldError::required(&path, detail)];
    }
    let terms = terms.iter().enumerate();
    terms
        .flat_map(|(index, term)| node_term(term, true, &path.index(index)))
        .collect()
}

fn weight(weighted: &Value, path: &Path) -> ErrorList {
    let weight = json::int(weighted, "weight").unwrap_or(0);
    if (1..=100).contains(&weight) {
        return ErrorList::new();
    }
    vec![FieldError::invalid(
        &path.child("weight"),
        weight,
        "must be in the range 1-100",
    )]
}

fn node_term(term: &Value, strict_values: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, requirement) in json::list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        errors.extend(node_requirement(requirement, strict_values, &path));
    }
    for (index, requirement) in json::list(term, "matchFields").iter().enumerate() {
        errors.extend(field_requirement(
            requirement,
            &path.child("matchFields").index(index),
        ));
    }
    errors
}

fn node_requirement(requirement: &Value, strict_values: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = json::list(requirement, "values");
    let values_path = path.child("values");
    match json::text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values_path, detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values_path, detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&values_path, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let path = path.child("operator");
            errors.push(FieldError::invalid(
                &path,
                other,
                "not a valid selector operator",
            ));
        }
    }
    errors.extend(label_name(
        json::text(requirement, "key"),
        &path.child("key"),
    ));
    for (index, value) in values.iter().enumerate().filter(|_| strict_values) {
        let value = value.as_str().unwrap_or("");
        invalid_each(
            &mut errors,
            &values_path.index(index),
            value,
            names::label_value(value),
        );
    }
    errors
}

fn field_requirement(requirement: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = json::list(requirement, "values");
    match json::text(requirement, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "In" | "NotIn" => {}
        other => {
            let path = path.child("operator");
            errors.push(FieldError::invalid(
                &path,
                other,
                "not a valid selector operator",
            ));
        }
    }
    let key = json::text(requirement, "key");
    if key != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(&path.child("key"), key, detail));
        return errors;
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or("");
        let path = path.child("values").index(index);
        invalid_each(&mut errors, &path, value, names::dns_subdomain(value));
    }
    errors
}

fn pod_affinity(affinity: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, term) in json::list(affinity, REQUIRED).iter().enumerate() {
        errors.extend(pod_term(term, &path.child(REQUIRED).index(index)));
    }
    for (index, weighted) in json::list(affinity, PREFERRED).iter().enumerate() {
        let path = path.child(PREFERRED).index(index);
        errors.extend(weight(weighted, &path));
        let term = json::get(weighted, "podAffinityTerm");
        errors.extend(pod_term(term, &path.child("podAffinityTerm")));
    }
    errors
}

fn pod_term(term: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["labelSelector", "namespaceSelector"] {
        errors.extend(label_selector::validate(
            json::get(term, field),
            &path.child(field),
        ));
    }
    for namespace in json::list(term, "namespaces") {
        let name = namespace.as_str().unwrap_or("");
        invalid_each(
            &mut errors,
            &path.child("namespace"),
            name,
            names::dns_label(name),
        );
    }
    errors.extend(label_keys(term, path));
    let key = json::text(term, "topologyKey");
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    errors.extend(label_name(key, &path));
    errors
}

/// `matchLabelKeys` and `mismatchLabelKeys` of an affinity term or spread constraint.
fn label_keys(term: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let selector = json::some(term, "labelSelector");
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = json::list(term, field);
        let path = path.child(field);
        if !keys.is_empty() && selector.is_none() {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            errors.extend(label_name(key.as_str().unwrap_or(""), &path.index(index)));
        }
    }
    errors.extend(keys_twice(term, path));
    let mismatched = json::list(term, "mismatchLabelKeys");
    for (index, key) in json::list(term, "matchLabelKeys").iter().enumerate() {
        if mismatched.contains(key) {
            let path = path.child("matchLabelKeys").index(index);
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&path, key.clone(), detail));
        }
    }
    errors
}

/// A key of `matchLabelKeys` is in the selector once, where the pod's own value was written; a
/// second time is the client's doing.
fn keys_twice(term: &Value, path: &Path) -> ErrorList {
    let selector = json::get(term, "labelSelector");
    let mut errors = ErrorList::new();
    let keys = json::list(term, "matchLabelKeys");
    for (index, key) in keys.iter().enumerate() {
        // Of a key that is there twice upstream names the last.
        let index = keys.iter().rposition(|k| k == key).unwrap_or(index);
        let key = key.as_str().unwrap_or("");
        let expressions = json::list(selector, "matchExpressions").iter();
        let expressions = expressions.filter(|e| json::text(e, "key") == key).count();
        let labels = usize::from(json::get(selector, "matchLabels").get(key).is_some());
        if labels + expressions > 1 {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(index), key, detail));
        }
    }
    errors
}

pub fn topology_spread(spec: &Value, path: &Path) -> ErrorList {
    let constraints = json::list(spec, "topologySpreadConstraints");
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    // From the last: upstream names the earlier one of two that are alike.
    let repeats: Vec<bool> = constraints
        .iter()
        .rev()
        .map(|constraint| !seen.insert(spread_key(constraint)))
        .collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        errors.extend(spread_constraint(constraint, &path));
        if repeats[constraints.len() - 1 - index] {
            let (key, action) = spread_key(constraint);
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
    }
    errors
}

fn spread_key(constraint: &Value) -> (String, String) {
    let [key, action] =
        ["topologyKey", "whenUnsatisfiable"].map(|field| json::text(constraint, field).to_owned());
    (key, action)
}

fn spread_constraint(constraint: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let skew = json::int(constraint, "maxSkew").unwrap_or(0);
    if skew <= 0 {
        errors.push(FieldError::invalid(
            &path.child("maxSkew"),
            skew,
            "must be greater than zero",
        ));
    }
    let (key, action) = spread_key(constraint);
    if key.is_empty() {
        errors.push(FieldError::required(
            &path.child("topologyKey"),
            "can not be empty",
        ));
    }
    let actions = &["DoNotSchedule", "ScheduleAnyway"];
    checks::one_of(
        &mut errors,
        &action,
        actions,
        &path.child("whenUnsatisfiable"),
    );
    if let Some(domains) = json::int(constraint, "minDomains") {
        let path = path.child("minDomains");
        if domains <= 0 {
            errors.push(FieldError::invalid(
                &path,
                domains,
                "must be greater than zero",
            ));
        }
        if action != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.push(FieldError::invalid(&path, domains, detail));
        }
    }
    for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if let Some(policy) = json::some(constraint, field).and_then(Value::as_str) {
            checks::one_of(
                &mut errors,
                policy,
                &["Honor", "Ignore"],
                &path.child(field),
            );
        }
    }
    errors.extend(label_keys(constraint, path));
    let selector = json::get(constraint, "labelSelector");
    errors.extend(label_selector::validate(
        selector,
        &path.child("labelSelector"),
    ));
    errors
}
