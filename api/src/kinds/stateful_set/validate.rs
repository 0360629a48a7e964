//! What is wrong with a stateful set.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, persistent_volume_claim, workload};
use crate::object::Object;
use crate::{json, label_selector, meta_validate, names, pod_spec};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What an update lets pass because the old object had it.
#[derive(Clone, Copy, Debug, Default)]
struct Tolerance {
    template: bool,
    service_name: bool,
    claims: bool,
}

pub fn create(object: &Object) -> ErrorList {
    let spec_value = object.get(&["spec"]).unwrap_or(&Value::Null);
    spec(spec_value, &Path::root("spec"), Tolerance::default())
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    let [new, old] = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
    let path = Path::root("spec");
    let mut tolerance = Tolerance {
        template: false,
        service_name: true,
        claims: true,
    };
    tolerance.template = !spec(old, &path, tolerance).is_empty();
    let mut errors = spec(new, &path, tolerance);
    let mut fixed = new.clone();
    if let Value::Object(map) = &mut fixed {
        for name in MUTABLE {
            map.insert(name.to_owned(), json::get(old, name).clone());
        }
    }
    if !json::same(&fixed, old) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                      'template', 'updateStrategy', 'revisionHistoryLimit', \
                      'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

fn spec(spec: &Value, path: &Path, tolerance: Tolerance) -> ErrorList {
    let mut errors = ErrorList::new();
    let policy = json::text(spec, "podManagementPolicy");
    let policy_path = path.child("podManagementPolicy");
    match policy {
        "" => errors.push(FieldError::required(&policy_path, "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid(&policy_path, other, detail));
        }
    }
    errors.extend(strategy(
        json::get(spec, "updateStrategy"),
        &path.child("updateStrategy"),
    ));
    errors.extend(retention(
        json::get(spec, "persistentVolumeClaimRetentionPolicy"),
        &path.child("persistentVolumeClaimRetentionPolicy"),
    ));
    let claims = json::list(spec, "volumeClaimTemplates").iter().enumerate();
    for (index, claim) in claims.filter(|_| !tolerance.claims) {
        let path = path
            .child("volumeClaimTemplates")
            .index(index)
            .child("spec");
        let spec = json::get(claim, "spec");
        errors.extend(persistent_volume_claim::validate::spec(spec, None, &path));
    }
    checks::nonnegative(&mut errors, spec, "replicas", path);
    checks::nonnegative(&mut errors, spec, "minReadySeconds", path);
    if let Some(ordinals) = json::some(spec, "ordinals") {
        checks::nonnegative(&mut errors, ordinals, "start", &path.child("ordinals"));
    }
    let service = json::text(spec, "serviceName");
    if !service.is_empty() && !tolerance.service_name {
        let path = path.child("serviceName");
        checks::each(&mut errors, &path, service, names::dns_label(service));
    }
    errors.extend(selector_and_template(spec, path, tolerance));
    workload::always_restarts(
        &mut errors,
        json::get(spec, "template"),
        "StatefulSet",
        &path.child("template"),
    );
    errors
}

fn strategy(strategy: &Value, path: &Path) -> ErrorList {
    let rolling = json::some(strategy, "rollingUpdate");
    let rolling_path = path.child("rollingUpdate");
    let error = match (json::text(strategy, "type"), rolling) {
        ("", _) => FieldError::required(path, ""),
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            FieldError::invalid(&rolling_path, rolling.clone(), detail)
                .as_go("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy")
        }
        ("RollingUpdate", Some(rolling)) => {
            let mut errors = ErrorList::new();
            checks::nonnegative(&mut errors, rolling, "partition", &rolling_path);
            return errors;
        }
        ("OnDelete" | "RollingUpdate", None) => return ErrorList::new(),
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            FieldError::invalid(path, strategy.clone(), detail)
                .as_go("io.k8s.api.apps.v1.StatefulSetUpdateStrategy")
        }
    };
    vec![error]
}

fn retention(retention: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if retention.is_null() {
        return errors;
    }
    for name in ["whenDeleted", "whenScaled"] {
        let value = json::text(retention, name);
        checks::one_of(&mut errors, value, &["Retain", "Delete"], &path.child(name));
    }
    errors
}

fn selector_and_template(spec: &Value, path: &Path, tolerance: Tolerance) -> ErrorList {
    let mut errors = ErrorList::new();
    let selector_path = path.child("selector");
    let template = with_claims(spec);
    let template_path = path.child("template");
    let matches = match json::some(spec, "selector") {
        None => {
            errors.push(FieldError::required(&selector_path, ""));
            false
        }
        Some(selector) => {
            errors.extend(label_selector::validate(selector, &selector_path));
            let valid = errors.is_empty();
            let invalid = |detail: &str| {
                FieldError::invalid(&selector_path, selector.clone(), detail)
                    .as_go(checks::LABEL_SELECTOR)
            };
            if label_selector::is_empty(selector) {
                errors.push(invalid("empty selector is invalid for statefulset"));
            }
            if !valid {
                errors.push(invalid(""));
                return errors;
            }
            label_selector::matches(selector, json::at(&template, &["metadata", "labels"]))
        }
    };
    if !matches {
        errors.push(workload::labels_error(&template, &template_path));
    }
    if !tolerance.template {
        errors.extend(pod_spec::validate::template(
            &template,
            None,
            &template_path,
        ));
    }
    // Upstream checks these once more, and names them without `metadata`.
    let metadata = json::get(&template, "metadata");
    errors.extend(meta_validate::labels(
        json::get(metadata, "labels"),
        &template_path.child("labels"),
    ));
    let annotations = template_path.child("annotations");
    errors.extend(meta_validate::annotations(
        json::get(metadata, "annotations"),
        &annotations,
    ));
    errors.extend(pod_spec::validate::pod_annotations(
        metadata,
        json::get(&template, "spec"),
        &annotations,
    ));
    errors
}

/// The template as its pods will be: with a volume a claim, and without names that the controller
/// gives them.
fn with_claims(spec: &Value) -> Value {
    let mut template = json::get(spec, "template").clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return template;
    };
    pod.remove("subdomain");
    pod.remove("hostname");
    let claims: BTreeSet<&str> = json::list(spec, "volumeClaimTemplates")
        .iter()
        .map(|claim| claim.pointer("/metadata/name").and_then(Value::as_str))
        .map(Option::unwrap_or_default)
        .collect();
    if claims.is_empty() {
        return template;
    }
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }))
        .collect();
    let own = pod.get("volumes").and_then(Value::as_array);
    let own = own.into_iter().flatten();
    volumes.extend(
        own.filter(|volume| !claims.contains(json::text(volume, "name")))
            .cloned(),
    );
    pod.insert("volumes".to_owned(), volumes.into());
    template
}

pub fn status(new: &Object, old: &Object) -> ErrorList {
    const ALL: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    const PARTS: [&str; 4] = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    let status = new.get(&["status"]).unwrap_or(&Value::Null);
    let mut errors = workload::counts(status, &ALL, &PARTS, "status.readyReplicas");
    errors.extend(workload::collisions(new, old));
    errors
}
