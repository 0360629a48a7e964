//! What is wrong with a job, or with the template of one.

use super::{NAME_LABELS, UID_LABELS, policies};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, workload};
use crate::object::Object;
use crate::{json, label_selector, names, pod_spec};
use serde_json::{Map, Value};

/// These bound the texts of indexes in a status.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const MANY_PARALLELISM_MAX: i64 = 10_000;
const MANY_FAILED_INDEXES_MAX: i64 = 10_000;
const MANAGED_BY_BYTES_MAX: usize = 63;

/// A job as a whole. Jobs of old may lack the labels of now.
pub fn job(object: &Object, has_new_labels: bool) -> ErrorList {
    let spec_value = object.get(&["spec"]).unwrap_or(&Value::Null);
    let mut errors = generated_selector(object, has_new_labels);
    errors.extend(spec(spec_value, &Path::root("spec")));
    errors.extend(last_hostname(object, spec_value));
    errors
}

/// The selector that was made, and the labels that it needs.
fn generated_selector(object: &Object, has_new_labels: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(selector) = object
        .get(&["spec", "selector"])
        .filter(|selector| !selector.is_null() && !object.bool(&["spec", "manualSelector"]))
    else {
        return errors;
    };
    let spec_path = Path::root("spec");
    let labels_path = spec_path
        .child("template")
        .child("metadata")
        .child("labels");
    let labels = object
        .get(&["spec", "template", "metadata", "labels"])
        .unwrap_or(&Value::Null);
    let mut expected = Map::new();
    let ages = if has_new_labels { 0..2 } else { 0..1 };
    for age in ages {
        let pairs = [
            (UID_LABELS[age], object.uid()),
            (NAME_LABELS[age], object.name()),
        ];
        for (label, value) in pairs {
            expected.insert(label.to_owned(), value.into());
            let detail = format!("must be '{value}'");
            let path = labels_path.key(label);
            match json::some(labels, label) {
                None => errors.push(FieldError::required(&path, detail)),
                Some(found) if found != value => {
                    errors.push(FieldError::invalid(&path, labels.clone(), detail));
                }
                Some(_) => {}
            }
        }
    }
    let path = spec_path.child("selector");
    if label_selector::validate(selector, &path).is_empty()
        && !label_selector::matches(selector, &Value::Object(expected))
    {
        let detail = "`selector` not auto-generated";
        errors.push(FieldError::invalid(&path, selector.clone(), detail));
    }
    errors
}

/// The index of a pod is added to its host name.
fn last_hostname(object: &Object, spec: &Value) -> Option<FieldError> {
    let completions = json::int(spec, "completions").filter(|completions| *completions > 0)?;
    if !is_indexed(spec) {
        return None;
    }
    let hostname = format!("{}-{}", object.name(), completions - 1);
    if names::dns_label(&hostname).is_empty() {
        return None;
    }
    let path = Path::root("metadata").child("name");
    let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
    Some(FieldError::invalid(&path, object.name(), detail))
}

pub fn is_indexed(spec: &Value) -> bool {
    json::text(spec, "completionMode") == "Indexed"
}

/// The spec of a job, which has a selector.
pub fn spec(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = template_spec(spec, path);
    let selector_path = path.child("selector");
    let selector = json::get(spec, "selector");
    let of_selector = label_selector::validate(selector, &selector_path);
    let is_valid = of_selector.is_empty();
    if selector.is_null() {
        errors.push(FieldError::required(&selector_path, ""));
    }
    errors.extend(of_selector);
    let template = json::get(spec, "template");
    let labels = json::at(template, &["metadata", "labels"]);
    let matches = !selector.is_null() && label_selector::matches(selector, labels);
    if is_valid && !matches {
        errors.push(workload::labels_error(template, &path.child("template")));
    }
    errors
}

/// The spec of a job as it may stand in a template, but for its selector.
pub fn template_spec(spec: &Value, path: &Path) -> ErrorList {
    const COUNTS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    let mut errors = ErrorList::new();
    for name in COUNTS {
        checks::nonnegative(&mut errors, spec, name, path);
    }
    if json::has(spec, "maxFailedIndexes") && !json::has(spec, "backoffLimitPerIndex") {
        let path = path.child("backoffLimitPerIndex");
        errors.push(FieldError::required(
            &path,
            "when maxFailedIndexes is specified",
        ));
    }
    if let Some(manager) = json::some(spec, "managedBy").and_then(Value::as_str) {
        let path = path.child("managedBy");
        checks::domain_prefixed_path(&mut errors, manager, &path);
        if manager.len() > MANAGED_BY_BYTES_MAX {
            errors.push(FieldError::too_long(&path, MANAGED_BY_BYTES_MAX));
        }
    }
    errors.extend(completion_mode(spec, path));
    if let Some(policy) = json::some(spec, "podFailurePolicy") {
        let path = path.child("podFailurePolicy");
        errors.extend(policies::failure(spec, policy, &path));
    }
    if let Some(policy) = json::some(spec, "successPolicy") {
        let path = path.child("successPolicy");
        if is_indexed(spec) {
            errors.extend(policies::success(spec, policy, &path));
        } else {
            let detail = "requires indexed completion mode";
            let error = FieldError::invalid(&path, policy.clone(), detail);
            errors.push(error.as_go("io.k8s.api.batch.v1.SuccessPolicy"));
        }
    }
    errors.extend(policies::replacement(
        spec,
        &path.child("podReplacementPolicy"),
    ));
    errors.extend(pod_spec::validate::template(
        json::get(spec, "template"),
        None,
        &path.child("template"),
    ));
    errors.extend(restart_policy(spec, path));
    errors
}

fn completion_mode(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mode = json::some(spec, "completionMode").and_then(Value::as_str);
    match mode {
        None | Some("NonIndexed") => {
            for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = json::some(spec, name) {
                    let detail = "requires indexed completion mode";
                    errors.push(FieldError::invalid(
                        &path.child(name),
                        value.clone(),
                        detail,
                    ));
                }
            }
        }
        Some("Indexed") => errors.extend(indexed(spec, path)),
        Some(other) => checks::one_of(
            &mut errors,
            other,
            &["NonIndexed", "Indexed"],
            &path.child("completionMode"),
        ),
    }
    errors
}

fn indexed(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let number = |name: &str| json::int(spec, name);
    let completions = number("completions");
    if completions.is_none() {
        let path = path.child("completions");
        errors.push(FieldError::required(
            &path,
            "when completion mode is Indexed",
        ));
    }
    let mut at_most = |name: &str, max: i64, what: String| {
        if let Some(value) = number(name).filter(|value| *value > max) {
            let detail = format!("must be less than or equal to {what}");
            errors.push(FieldError::invalid(&path.child(name), value, detail));
        }
    };
    let when = format!("{INDEXED_PARALLELISM_MAX} when completion mode is Indexed");
    at_most("parallelism", INDEXED_PARALLELISM_MAX, when);
    if let Some(completions) = completions {
        at_most("maxFailedIndexes", completions, "completions".to_owned());
    }
    at_most(
        "maxFailedIndexes",
        FAILED_INDEXES_MAX,
        FAILED_INDEXES_MAX.to_string(),
    );
    let has_many = completions.is_some_and(|completions| completions > MANY_COMPLETIONS);
    if has_many && json::has(spec, "backoffLimitPerIndex") {
        let with = |max: i64| {
            format!(
                "{max} when completions are above {MANY_COMPLETIONS} and used with backoff limit \
                 per index"
            )
        };
        at_most(
            "parallelism",
            MANY_PARALLELISM_MAX,
            with(MANY_PARALLELISM_MAX),
        );
        at_most(
            "maxFailedIndexes",
            MANY_FAILED_INDEXES_MAX,
            with(MANY_FAILED_INDEXES_MAX),
        );
        if number("maxFailedIndexes").is_none() {
            let path = path.child("maxFailedIndexes");
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.push(FieldError::required(&path, detail));
        }
    }
    errors
}

/// Pods that start anew when they end never complete.
fn restart_policy(spec: &Value, path: &Path) -> Option<FieldError> {
    let policy = json::text(json::at(spec, &["template", "spec"]), "restartPolicy");
    let path = path.child("template").child("spec").child("restartPolicy");
    match policy {
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            Some(FieldError::required(&path, detail))
        }
        "OnFailure" if json::has(spec, "podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            Some(FieldError::invalid(&path, policy, detail))
        }
        "OnFailure" | "Never" => None,
        other => {
            let supported = &["OnFailure", "Never"];
            Some(FieldError::not_supported(&path, other, supported))
        }
    }
}
