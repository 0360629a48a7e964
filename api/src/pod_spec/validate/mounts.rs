//! Where a container sees the volumes of its pod.

use super::paths;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::checks;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub fn volumes(container: &Value, volumes: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut points = BTreeSet::new();
    let devices = json::list(container, "volumeDevices");
    for (index, mount) in json::list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let [name, point] = ["name", "mountPath"].map(|field| json::text(mount, field));
        let [name_path, point_path] = ["name", "mountPath"].map(|field| at.child(field));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&name_path, name));
        }
        if point.is_empty() {
            errors.push(FieldError::required(&point_path, ""));
        }
        if !points.insert(point) {
            errors.push(FieldError::invalid(&point_path, point, "must be unique"));
        }
        if devices
            .iter()
            .any(|device| json::text(device, "name") == name)
        {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
        if devices
            .iter()
            .any(|device| json::text(device, "devicePath") == point)
        {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&point_path, point, detail));
        }
        errors.extend(sub_path(mount, path, &at));
        errors.extend(propagation(
            mount,
            container,
            &path.child("mountPropagation"),
        ));
        errors.extend(recursive_read_only(mount, &path.child("recursiveReadOnly")));
    }
    errors
}

fn sub_path(mount: &Value, list_path: &Path, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let [plain, expression] = ["subPath", "subPathExpr"].map(|field| json::text(mount, field));
    // Upstream leaves the index out of these paths; clients see them so.
    errors.extend(paths::descending(plain, &list_path.child("subPath")));
    if !expression.is_empty() && !plain.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(
            &path.child("subPathExpr"),
            expression,
            detail,
        ));
    }
    errors.extend(paths::descending(
        expression,
        &list_path.child("subPathExpr"),
    ));
    errors
}

fn propagation(mount: &Value, container: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(mode) = json::some(mount, "mountPropagation").and_then(Value::as_str) else {
        return errors;
    };
    let modes = &["Bidirectional", "HostToContainer", "None"];
    checks::one_of(&mut errors, mode, modes, path);
    let privileged = json::at(container, &["securityContext", "privileged"]) == true;
    if mode == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn recursive_read_only(mount: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(mode) = json::some(mount, "recursiveReadOnly").and_then(Value::as_str) else {
        return errors;
    };
    if !matches!(mode, "Enabled" | "IfPossible") {
        checks::one_of(
            &mut errors,
            mode,
            &["Disabled", "Enabled", "IfPossible"],
            path,
        );
        return errors;
    }
    if !json::flag(mount, "readOnly") {
        let detail = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(path, detail));
    }
    if json::some(mount, "mountPropagation").is_some_and(|mode| mode != "None") {
        let detail = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

pub fn devices(container: &Value, volumes: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let [mut seen_paths, mut seen_names] = [BTreeSet::new(), BTreeSet::new()];
    let mounts = json::list(container, "volumeMounts");
    for (index, device) in json::list(container, "volumeDevices").iter().enumerate() {
        let [name_path, device_path] =
            ["name", "devicePath"].map(|field| path.index(index).child(field));
        let [name, point] = ["name", "devicePath"].map(|field| json::text(device, field));
        let mut invalid = |path: &Path, value: &str, detail: &str| {
            errors.push(FieldError::invalid(path, value, detail));
        };
        if !name.is_empty() && !seen_names.insert(name) {
            invalid(&name_path, name, "must be unique");
        }
        let block = ["persistentVolumeClaim", "ephemeral"];
        if let Some(volume) = volumes.get(name)
            && !block.iter().any(|source| json::has(volume, source))
        {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                          for block mode";
            invalid(&name_path, name, detail);
        }
        if !point.is_empty() && point.split('/').any(|step| step == "..") {
            invalid(&device_path, point, "can not contain backsteps ('..')");
        } else if !point.is_empty() && !seen_paths.insert(point) {
            invalid(&device_path, point, "must be unique");
        }
        if mounts.iter().any(|mount| json::text(mount, "name") == name) {
            invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if mounts
            .iter()
            .any(|mount| json::text(mount, "mountPath") == point)
        {
            let detail = "must not already exist as a path in volumeMounts";
            invalid(&device_path, point, detail);
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&name_path, name));
        }
        for (value, path) in [(name, &name_path), (point, &device_path)] {
            if value.is_empty() {
                errors.push(FieldError::required(path, ""));
            }
        }
    }
    errors
}
