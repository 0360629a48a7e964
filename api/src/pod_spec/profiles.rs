//! Seccomp and AppArmor profiles by annotation, as pods named them before there were fields.
//!
//! Those of AppArmor become fields of a new pod; those of seccomp do nothing. Where a pod has the
//! annotation and the field, the two agree.

use super::validate::{paths, security};
use super::{LISTS, containers};
use crate::decode::quoted;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The name of a container follows.
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The name of a container follows.
pub const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const RUNTIME_DEFAULT: &str = "runtime/default";
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";
const LOCALHOST: &str = "localhost/";

const SECCOMP_USE: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const APPARMOR_USE: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// What is wrong with the annotations. `path` is theirs.
pub fn annotations(annotations: &Value, spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let texts = || {
        let all = annotations.as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key, value.as_str()?)))
    };
    let of_pod = texts().filter(|(key, _)| *key == SECCOMP_POD);
    let of_containers = texts().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER));
    for (key, profile) in of_pod.chain(of_containers) {
        errors.extend(seccomp(profile, &path.child(key)));
    }
    let of_pod = containers(spec, &Path::root("spec")).into_iter();
    let names: BTreeSet<&str> = of_pod.map(|(one, _)| json::text(one, "name")).collect();
    for (key, profile) in texts() {
        let Some(name) = key.strip_prefix(APPARMOR) else {
            continue;
        };
        let path = path.key(key);
        if !names.contains(name) {
            errors.push(FieldError::invalid(&path, name, "container not found"));
        }
        let is_known = ["", RUNTIME_DEFAULT, UNCONFINED].contains(&profile);
        if !is_known && !profile.starts_with(LOCALHOST) {
            let detail = format!("invalid AppArmor profile name: {}", quoted(profile));
            errors.push(FieldError::invalid(&path, profile, detail));
        }
    }
    errors
}

fn seccomp(profile: &str, path: &Path) -> ErrorList {
    if [RUNTIME_DEFAULT, DOCKER_DEFAULT, UNCONFINED].contains(&profile) {
        return ErrorList::new();
    }
    match profile.strip_prefix(LOCALHOST) {
        Some(local) => paths::descending(local, path),
        None => {
            let detail = "must be a valid seccomp profile";
            vec![FieldError::invalid(path, profile, detail)]
        }
    }
}

/// Where annotations and fields do not agree. `path` is that of the spec.
pub fn disagreements(annotations: &Value, spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if annotations.as_object().is_none_or(Map::is_empty) {
        return errors;
    }
    let all = containers(spec, path);
    let mut compare = |key: &str, profile: &Value, what: &str, path: &Path| {
        if let Some(annotation) = annotations.get(key).and_then(Value::as_str) {
            errors.extend(disagreement(annotation, profile, what, path));
        }
    };
    let of_pod = json::get(spec, "securityContext");
    let profile = json::get(of_pod, "seccompProfile");
    let pod_path = path.child("securityContext").child("seccompProfile");
    compare(SECCOMP_POD, profile, "seccomp", &pod_path);
    for (container, path) in &all {
        let key = format!("{SECCOMP_CONTAINER}{}", json::text(container, "name"));
        let profile = json::at(container, &["securityContext", "seccompProfile"]);
        let path = path.child("securityContext").child("seccompProfile");
        compare(&key, profile, "seccomp", &path);
    }
    if is_windows(spec) {
        return errors;
    }
    for (container, path) in &all {
        let key = format!("{APPARMOR}{}", json::text(container, "name"));
        let own = json::at(container, &["securityContext", "appArmorProfile"]);
        let profile = match own {
            Value::Null => json::get(of_pod, "appArmorProfile"),
            own => own,
        };
        let path = path.child("securityContext").child("appArmorProfile");
        compare(&key, profile, "apparmor", &path);
    }
    errors
}

fn disagreement(annotation: &str, profile: &Value, what: &str, path: &Path) -> Option<FieldError> {
    let local = annotation.strip_prefix(LOCALHOST);
    let agrees = match json::text(profile, "type") {
        "Unconfined" => annotation == UNCONFINED,
        "RuntimeDefault" => {
            let of_old = what == "seccomp" && annotation == DOCKER_DEFAULT;
            annotation == RUNTIME_DEFAULT || of_old
        }
        "Localhost" => local.is_some(),
        _ => return None,
    };
    if !agrees {
        let detail = format!("{what} type in annotation and field must match");
        return Some(FieldError::forbidden(&path.child("type"), detail));
    }
    let wanted = json::get(profile, "localhostProfile").as_str();
    let is_local = json::text(profile, "type") == "Localhost";
    (is_local && wanted != local).then(|| {
        let detail = format!("{what} profile in annotation and field must match");
        FieldError::forbidden(&path.child("localhostProfile"), detail)
    })
}

/// The warning of a pod's seccomp annotation. `path` is that of the annotations.
pub fn seccomp_of_pod(annotations: &Value, spec: &Value, path: &Path) -> Option<String> {
    let has_field = json::has(json::get(spec, "securityContext"), "seccompProfile");
    let has_annotation = json::has(annotations, SECCOMP_POD);
    (!has_field && has_annotation).then(|| format!("{}: {SECCOMP_USE}", path.key(SECCOMP_POD)))
}

/// The warning of a container's seccomp annotation.
pub fn seccomp_of_container(annotations: &Value, container: &Value, path: &Path) -> Option<String> {
    let key = format!("{SECCOMP_CONTAINER}{}", json::text(container, "name"));
    let has_field = json::has(json::get(container, "securityContext"), "seccompProfile");
    let has_annotation = json::has(annotations, &key);
    (!has_field && has_annotation).then(|| format!("{}: {SECCOMP_USE}", path.key(&key)))
}

/// The warning of a container's AppArmor annotation that says more than the fields, in a template.
pub fn apparmor_of_container(
    annotations: &Value,
    spec: &Value,
    container: &Value,
    path: &Path,
) -> Option<String> {
    let key = format!("{APPARMOR}{}", json::text(container, "name"));
    let annotation = annotations.get(&key)?.as_str()?;
    if json::has(json::get(container, "securityContext"), "appArmorProfile") {
        return None;
    }
    let of_pod = json::at(spec, &["securityContext", "appArmorProfile"]);
    let says_more = field_of(annotation).is_none_or(|field| !same_profile(&field, of_pod));
    says_more.then(|| format!("{}: {APPARMOR_USE}", path.key(&key)))
}

/// The warnings of AppArmor annotations that a new pod has instead of fields.
pub fn apparmor_of_pod(annotations: &Value, spec: &Value) -> Vec<String> {
    let path = Path::root("metadata").child("annotations");
    if is_windows(spec) {
        return Vec::new();
    }
    let all = containers(spec, &Path::root("spec")).into_iter();
    all.filter_map(|(container, _)| apparmor_of_container(annotations, spec, container, &path))
        .collect()
}

/// Gives containers the AppArmor profiles that annotations of the pod name.
pub fn annotations_to_fields(annotations: &Value, spec: &mut Value) {
    if annotations.is_null() || is_windows(spec) {
        return;
    }
    let of_pod = json::at(spec, &["securityContext", "appArmorProfile"]).clone();
    for list in LISTS {
        for container in json::list_mut(spec, list) {
            annotation_to_field(annotations, container, &of_pod);
        }
    }
}

fn annotation_to_field(annotations: &Value, container: &mut Value, of_pod: &Value) {
    let key = format!("{APPARMOR}{}", json::text(container, "name"));
    let annotation = annotations.get(&key).and_then(Value::as_str);
    let Some(field) = annotation.and_then(field_of) else {
        return;
    };
    let has_field = json::has(json::get(container, "securityContext"), "appArmorProfile");
    if has_field || same_profile(&field, of_pod) {
        return;
    }
    json::default(container, "securityContext", json!({}));
    if let Some(context) = json::object_mut(container, "securityContext") {
        context["appArmorProfile"] = field;
    }
}

/// `None` for what is no profile.
fn field_of(annotation: &str) -> Option<Value> {
    let field = match annotation {
        UNCONFINED => json!({ "type": "Unconfined" }),
        RUNTIME_DEFAULT => json!({ "type": "RuntimeDefault" }),
        other => {
            let local = other.strip_prefix(LOCALHOST)?;
            json!({ "type": "Localhost", "localhostProfile": local })
        }
    };
    let path = Path::root("appArmorProfile");
    security::app_armor(&field, &path)
        .is_empty()
        .then_some(field)
}

fn same_profile(one: &Value, other: &Value) -> bool {
    ["type", "localhostProfile"]
        .iter()
        .all(|field| json::get(one, field) == json::get(other, field))
}

fn is_windows(spec: &Value) -> bool {
    json::text(json::get(spec, "os"), "name") == "windows"
}

#[cfg(test)]
mod tests;
