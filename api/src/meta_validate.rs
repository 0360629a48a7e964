//! Validation of `metadata`, the same for every kind.

use crate::field::{ErrorList, FieldError, Path};
use crate::object::Object;
use crate::resource::{NameRule, Resource};
use crate::{catalogue, json, names};
use serde_json::Value;

/// All annotations of an object together, keys and values: they share the object's storage.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// What is wrong with the metadata of an object about to be created.
pub fn validate_metadata(object: &Object, resource: &Resource) -> ErrorList {
    let path = Path::root("metadata");
    let metadata = object.get(&["metadata"]).unwrap_or(&Value::Null);
    let rule = resource.rules.name_rule();
    let mut errors = ErrorList::new();

    let prefix = json::text(metadata, "generateName");
    if !prefix.is_empty() {
        let generate = path.child("generateName");
        invalid_each(&mut errors, &generate, prefix, generate_name(rule, prefix));
    }
    let name = json::text(metadata, "name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), detail));
    } else {
        invalid_each(
            &mut errors,
            &path.child("name"),
            name,
            check_name(rule, name),
        );
    }
    errors.extend(namespace(metadata, &path, resource.is_namespaced()));
    errors.extend(accessor(metadata, &path));
    errors.extend(finalizers(metadata, &path.child("finalizers")));
    errors.extend(standard_finalizers(object, &path.child("finalizers")));
    errors
}

/// What is wrong with the change of metadata from `old` to `new`.
pub fn validate_metadata_update(new: &Object, old: &Object) -> ErrorList {
    let path = Path::root("metadata");
    let of_kubernetes = standard_finalizers(new, &path.child("finalizers"));
    let new = new.get(&["metadata"]).unwrap_or(&Value::Null);
    let old = old.get(&["metadata"]).unwrap_or(&Value::Null);
    let mut errors = ErrorList::new();
    errors.extend(no_new_finalizers(new, old, &path));
    let generation = |metadata: &Value| json::int(metadata, "generation").unwrap_or(0);
    if generation(new) < generation(old) {
        let path = path.child("generation");
        errors.push(FieldError::invalid(
            &path,
            generation(new),
            "must not be decremented",
        ));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if json::get(new, field) != json::get(old, field) {
            let value = json::get(new, field).clone();
            errors.push(FieldError::invalid(
                &path.child(field),
                value,
                names::IMMUTABLE,
            ));
        }
    }
    errors.extend(accessor(new, &path));
    errors.extend(of_kubernetes);
    errors
}

fn namespace(metadata: &Value, path: &Path, namespaced: bool) -> ErrorList {
    let path = path.child("namespace");
    let namespace = json::text(metadata, "namespace");
    let mut errors = ErrorList::new();
    match (namespaced, namespace) {
        (true, "") => errors.push(FieldError::required(&path, "")),
        (true, name) => invalid_each(&mut errors, &path, name, names::dns_label(name)),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&path, "not allowed on this type")),
    }
    errors
}

/// What holds on create and on update alike.
fn accessor(metadata: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(generation) = json::int(metadata, "generation")
        && generation < 0
    {
        let path = path.child("generation");
        errors.push(FieldError::invalid(
            &path,
            generation,
            names::MUST_NOT_BE_NEGATIVE,
        ));
    }
    errors.extend(labels(json::get(metadata, "labels"), &path.child("labels")));
    errors.extend(annotations(
        json::get(metadata, "annotations"),
        &path.child("annotations"),
    ));
    errors.extend(owner_references(metadata, &path.child("ownerReferences")));
    errors
}

/// Labels, wherever they stand.
pub fn labels(labels: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.extend(label_name(key, path));
        let value = value.as_str().unwrap_or("");
        invalid_each(&mut errors, path, value, names::label_value(value));
    }
    errors
}

/// One label key, reported at `path`.
pub fn label_name(key: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, key, names::qualified_name(key));
    errors
}

pub fn annotations(annotations: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // Keys of annotations are compared without regard to case.
        let lower = key.to_lowercase();
        invalid_each(&mut errors, path, key, names::qualified_name(&lower));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

/// Metadata inside of a template: labels and annotations, and nothing else.
pub fn template_metadata(metadata: &Value, path: &Path) -> ErrorList {
    let mut errors = annotations(
        json::get(metadata, "annotations"),
        &path.child("annotations"),
    );
    errors.extend(labels(json::get(metadata, "labels"), &path.child("labels")));
    for (field, value) in metadata.as_object().into_iter().flatten() {
        let allowed = matches!(field.as_str(), "annotations" | "labels");
        if !allowed && !json::is_empty(value) {
            errors.push(FieldError::forbidden(&path.child(field), "cannot be set"));
        }
    }
    errors
}

fn owner_references(metadata: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for reference in json::list(metadata, "ownerReferences") {
        // Upstream names the list, and not the item.
        errors.extend(owner_reference(reference, path));
        if !json::flag(reference, "controller") {
            continue;
        }
        let who = format!(
            "{}/{}",
            json::text(reference, "kind"),
            json::text(reference, "name")
        );
        match &controller {
            None => controller = Some(who),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {who}"
                );
                let value = Value::from(json::list(metadata, "ownerReferences"));
                errors.push(FieldError::invalid(path, value, detail));
            }
        }
    }
    errors
}

fn owner_reference(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |name| json::text(reference, name);
    let version = text("apiVersion").rsplit('/').next().unwrap_or("");
    if version.is_empty() {
        let detail = "version must not be empty";
        errors.push(FieldError::invalid(
            &path.child("apiVersion"),
            text("apiVersion"),
            detail,
        ));
    }
    for (name, detail) in [
        ("kind", "must not be empty"),
        ("name", "must not be empty"),
        ("uid", "must not be empty"),
    ] {
        if text(name).is_empty() {
            errors.push(FieldError::invalid(&path.child(name), "", detail));
        }
    }
    if text("apiVersion") == "v1" && text("kind") == "Event" {
        let value = reference.clone();
        errors.push(FieldError::invalid(
            path,
            value,
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
    errors
}

fn finalizers(metadata: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let all = json::list(metadata, "finalizers");
    for finalizer in all {
        let finalizer = finalizer.as_str().unwrap_or("");
        errors.extend(finalizer_name(finalizer, path));
    }
    let has = |name: &str| all.iter().any(|f| f.as_str() == Some(name));
    if has("orphan") && has("foregroundDeletion") {
        errors.push(FieldError::invalid(
            path,
            Value::from(all),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// A finalizer is a qualified name; one without a slash must be one of the standard ones.
pub fn finalizer_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, name, names::qualified_name(name));
    errors
}

/// On the kinds of Kubernetes itself a finalizer without a domain is one of the known ones.
fn standard_finalizers(object: &Object, path: &Path) -> ErrorList {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let group = object
        .api_version()
        .split_once('/')
        .map_or("", |(group, _)| group);
    // Definitions and what they bring are looked at by another server of upstream's.
    let is_own = catalogue::groups().any(|own| own.name == group);
    if !is_own || group == crate::custom::GROUP {
        return ErrorList::new();
    }
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    object
        .finalizers()
        .enumerate()
        .filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name))
        .map(|(index, name)| FieldError::invalid(&path.index(index), name, detail))
        .collect()
}

/// An object that is being deleted takes no new finalizer.
fn no_new_finalizers(new: &Value, old: &Value, path: &Path) -> ErrorList {
    if !json::has(old, "deletionTimestamp") {
        return ErrorList::new();
    }
    let before = json::list(old, "finalizers");
    let mut added: Vec<&str> = json::list(new, "finalizers")
        .iter()
        .filter(|finalizer| !before.contains(finalizer))
        .filter_map(Value::as_str)
        .collect();
    added.sort_unstable();
    if added.is_empty() {
        return ErrorList::new();
    }
    let quoted: Vec<String> = added.iter().map(|name| format!("\"{name}\"")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        quoted.join(", ")
    );
    vec![FieldError::forbidden(&path.child("finalizers"), detail)]
}

fn check_name(rule: NameRule, name: &str) -> Vec<String> {
    match rule {
        NameRule::DnsSubdomain => names::dns_subdomain(name),
        NameRule::DnsLabel => names::dns_label(name),
        NameRule::Rfc1035Label => names::dns_1035_label(name),
        NameRule::PathSegment => names::path_segment(name),
        NameRule::CanonicalIp => names::canonical_ip(name),
    }
}

/// A prefix may end with a dash: what follows it is made by the server.
fn generate_name(rule: NameRule, prefix: &str) -> Vec<String> {
    match prefix.strip_suffix('-') {
        Some(stem) if prefix.len() > 1 && rule != NameRule::PathSegment => {
            check_name(rule, &format!("{stem}a"))
        }
        _ => check_name(rule, prefix),
    }
}

/// One error a text, all at the same field.
pub fn invalid_each(errors: &mut ErrorList, path: &Path, value: &str, details: Vec<String>) {
    errors.extend(
        details
            .into_iter()
            .map(|detail| FieldError::invalid(path, value, detail)),
    );
}

#[cfg(test)]
mod tests;
