//! Environment variables and where their values come from.

use super::paths;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::quantity::Quantity;
use crate::{json, names};
use serde_json::Value;

/// Fields of the pod that a variable may show, sorted.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields that exist for the downward API, in variables or in volumes.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Resources of a container that may be shown, sorted.
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

pub fn variables(container: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, variable) in json::list(container, "env").iter().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        match json::text(variable, "name") {
            "" => errors.push(FieldError::required(&name_path, "")),
            name => invalid_each(&mut errors, &name_path, name, names::relaxed_env_var(name)),
        }
        if json::has(variable, "valueFrom") {
            errors.extend(value_from(variable, &path.child("valueFrom")));
        }
    }
    errors
}

fn value_from(variable: &Value, path: &Path) -> ErrorList {
    let source = json::get(variable, "valueFrom");
    let mut errors = ErrorList::new();
    let mut given = 0;
    for name in SOURCES {
        let Some(reference) = json::some(source, name) else {
            continue;
        };
        given += 1;
        let path = path.child(name);
        errors.extend(match name {
            "fieldRef" => field_selector(reference, FIELDS, &path),
            "resourceFieldRef" => resource_selector(reference, false, &path),
            "fileKeyRef" => file_key(reference, &path),
            _ => key_selector(reference, &path),
        });
    }
    let detail = if given == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` \
         or `fileKeyRef`"
    } else if !json::text(variable, "value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if given > 1 {
        "may not have more than one field specified at a time"
    } else {
        return errors;
    };
    errors.push(FieldError::invalid(path, "", detail));
    errors
}

/// A field of the pod, perhaps with a subscript: `metadata.labels['app']`.
pub fn field_selector(reference: &Value, allowed: &[&str], path: &Path) -> ErrorList {
    for field in ["apiVersion", "fieldPath"] {
        if json::text(reference, field).is_empty() {
            return vec![FieldError::required(&path.child(field), "")];
        }
    }
    let field_path = path.child("fieldPath");
    let field = json::text(reference, "fieldPath");
    let [base, subscript] = match field.strip_suffix("']").and_then(|f| f.split_once("['")) {
        Some((base, subscript)) => [base, subscript],
        None => [field, ""],
    };
    let subscripted = base.len() != field.len();
    if json::text(reference, "apiVersion") != "v1" {
        let version = json::text(reference, "apiVersion");
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        return vec![FieldError::invalid(&field_path, field, detail)];
    }
    if !KNOWN_FIELDS.contains(&base) {
        let detail = format!("error converting fieldPath: field label not supported: {base}");
        return vec![FieldError::invalid(&field_path, field, detail)];
    }
    let mut errors = ErrorList::new();
    match (subscripted, base) {
        (true, "metadata.annotations") => {
            let details = names::qualified_name(&subscript.to_lowercase());
            invalid_each(&mut errors, path, subscript, details);
        }
        (true, "metadata.labels") => {
            invalid_each(
                &mut errors,
                path,
                subscript,
                names::qualified_name(subscript),
            );
        }
        (true, _) => {
            let detail = format!(
                "error converting fieldPath: field label does not support subscript: {field}"
            );
            errors.push(FieldError::invalid(&field_path, field, detail));
        }
        (false, _) => checks::one_of(&mut errors, base, allowed, &field_path),
    }
    errors
}

/// A resource of a container.
pub fn resource_selector(reference: &Value, in_volume: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let resource = json::text(reference, "resource");
    let pages = ["requests.hugepages-", "limits.hugepages-"];
    let huge = pages.iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && json::text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !huge {
        checks::one_of(&mut errors, resource, RESOURCES, &path.child("resource"));
    }
    errors.extend(divisor(reference, resource, &path.child("divisor")));
    errors
}

fn divisor(reference: &Value, resource: &str, path: &Path) -> ErrorList {
    const BYTES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let Ok(divisor) = Quantity::from_value(json::get(reference, "divisor")) else {
        let value = json::get(reference, "divisor").clone();
        return vec![FieldError::invalid(
            path,
            value,
            "must be a valid resource quantity",
        )];
    };
    if divisor.is_zero() {
        return ErrorList::new();
    }
    let kind = resource.split_once('.').map_or("", |(_, kind)| kind);
    let (allowed, what) = match kind {
        "cpu" => ("1m and 1", "cpu"),
        "memory" => (BYTES, "memory"),
        "ephemeral-storage" => (BYTES, "local ephemeral storage"),
        kind if kind.starts_with("hugepages-") => (BYTES, "hugepages"),
        _ => return ErrorList::new(),
    };
    let shown = divisor.to_string();
    if allowed.split([',', ' ']).any(|one| one == shown) {
        return ErrorList::new();
    }
    let detail = format!("only divisor's values {allowed} are supported with the {what} resource");
    vec![FieldError::invalid(path, resource, detail)]
}

fn key_selector(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = json::text(reference, "name");
    invalid_each(
        &mut errors,
        &path.child("name"),
        name,
        names::dns_subdomain(name),
    );
    match json::text(reference, "key") {
        "" => errors.push(FieldError::required(&path.child("key"), "")),
        key => invalid_each(&mut errors, &path.child("key"), key, names::config_key(key)),
    }
    errors
}

fn file_key(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["key", "volumeName", "path"] {
        let at = path.child(field);
        let text = json::text(reference, field);
        match (field, text) {
            (_, "") => errors.push(FieldError::required(&at, "")),
            ("key", key) => invalid_each(&mut errors, &at, key, names::relaxed_env_var(key)),
            ("volumeName", name) => invalid_each(&mut errors, &at, name, names::dns_label(name)),
            (_, text) => errors.extend(paths::no_backsteps(text, &at)),
        }
    }
    errors
}

/// Variables from files come from emptyDir volumes.
pub fn file_volumes(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let volumes = json::list(spec, "volumes");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in json::list(spec, list).iter().enumerate() {
            let path = path.child(list).index(index).child("env");
            for (index, variable) in json::list(container, "env").iter().enumerate() {
                let name = json::at(variable, &["valueFrom", "fileKeyRef", "volumeName"]);
                let Some(name) = name.as_str() else { continue };
                let path = path.index(index).child("valueFrom").child("fileKeyRef");
                let path = path.child("volumeName");
                match volumes
                    .iter()
                    .find(|volume| json::text(volume, "name") == name)
                {
                    None => errors.push(FieldError::not_found(&path, name)),
                    Some(volume) if !json::has(volume, "emptyDir") => {
                        let detail = "referenced volume must be of type emptyDir";
                        errors.push(FieldError::invalid(&path, name, detail));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    errors
}

pub fn sources(container: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, source) in json::list(container, "envFrom").iter().enumerate() {
        let at = path.index(index);
        let prefix = json::text(source, "prefix");
        if !prefix.is_empty() {
            let details = names::relaxed_env_var(prefix);
            invalid_each(&mut errors, &at.child("prefix"), prefix, details);
        }
        let mut given = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = json::some(source, field) else {
                continue;
            };
            given += 1;
            let path = at.child(field).child("name");
            match json::text(reference, "name") {
                "" => errors.push(FieldError::required(&path, "")),
                name => invalid_each(&mut errors, &path, name, names::dns_subdomain(name)),
            }
        }
        let detail = match given {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(path, "", detail));
    }
    errors
}
