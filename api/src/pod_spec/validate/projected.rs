//! Volumes made of files: keys of ConfigMaps and Secrets, fields of the pod, tokens.

use super::{env, paths};
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::checks;
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of the pod that a file may hold, sorted.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// `items` of a ConfigMap or Secret volume.
pub fn key_paths(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, item) in json::list(source, "items").iter().enumerate() {
        let path = path.index(index);
        checks::required(&mut errors, item, "key", &path);
        checks::required(&mut errors, item, "path", &path);
        errors.extend(paths::not_reserved(
            json::text(item, "path"),
            &path.child("path"),
        ));
        paths::mode(&mut errors, json::int(item, "mode"), &path.child("mode"));
    }
    errors
}

/// One file of the downward API. Upstream reports it at the volume's path.
pub fn downward_file(file: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    checks::required(&mut errors, file, "path", path);
    errors.extend(paths::not_reserved(
        json::text(file, "path"),
        &path.child("path"),
    ));
    let resource = json::some(file, "resourceFieldRef");
    if let Some(field) = json::some(file, "fieldRef") {
        errors.extend(env::field_selector(field, FIELDS, &path.child("fieldRef")));
        if resource.is_some() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    } else if let Some(resource) = resource {
        errors.extend(env::resource_selector(
            resource,
            true,
            &path.child("resourceFieldRef"),
        ));
    } else {
        let detail = "one of fieldRef and resourceFieldRef is required";
        errors.push(FieldError::required(path, detail));
    }
    paths::mode(&mut errors, json::int(file, "mode"), &path.child("mode"));
    errors
}

pub fn volume(source: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    paths::mode(
        &mut errors,
        json::int(source, "defaultMode"),
        &path.child("defaultMode"),
    );
    let mut taken = BTreeSet::new();
    for (index, source) in json::list(source, "sources").iter().enumerate() {
        let at = path.child("sources").index(index);
        let mut given = 0;
        for name in ["secret", "configMap", "downwardAPI", "serviceAccountToken"] {
            let Some(projection) = json::some(source, name) else {
                continue;
            };
            given += 1;
            errors.extend(part(name, projection, path, &at.child(name)));
            errors.extend(conflicts(name, projection, path, &mut taken));
        }
        for name in ["clusterTrustBundle", "podCertificate"] {
            given += usize::from(json::has(source, name));
        }
        if given > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
    errors
}

fn part(name: &str, projection: &Value, volume_path: &Path, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match name {
        "secret" | "configMap" => {
            checks::required(&mut errors, projection, "name", path);
            errors.extend(key_paths(projection, &path.child("items")));
        }
        "downwardAPI" => {
            for file in json::list(projection, "items") {
                errors.extend(downward_file(file, path));
            }
        }
        _ => {
            let seconds = json::int(projection, "expirationSeconds").unwrap_or(0);
            let detail = match seconds {
                _ if seconds < TOKEN_SECONDS_MIN => {
                    "may not specify a duration less than 10 minutes"
                }
                _ if seconds > TOKEN_SECONDS_MAX => {
                    "may not specify a duration larger than 2^32 seconds"
                }
                _ => "",
            };
            if !detail.is_empty() {
                let path = path.child("expirationSeconds");
                errors.push(FieldError::invalid(&path, seconds, detail));
            }
            let target_path = volume_path.child("path");
            match json::text(projection, "path") {
                "" => errors.push(FieldError::required(&target_path, "")),
                target => errors.extend(paths::not_reserved(target, &target_path)),
            }
        }
    }
    errors
}

/// No two parts of one volume write the same file.
fn conflicts(
    name: &str,
    projection: &Value,
    path: &Path,
    taken: &mut BTreeSet<String>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for item in json::list(projection, "items") {
        let target = json::text(item, "path");
        if !target.is_empty() && !taken.insert(target.to_owned()) {
            let value = match name {
                "downwardAPI" => target,
                _ => json::text(projection, "name"),
            };
            errors.push(FieldError::invalid(
                path,
                value,
                "conflicting duplicate paths",
            ));
        }
    }
    errors
}
