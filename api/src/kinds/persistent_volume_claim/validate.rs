//! What is wrong with a claim, or with the template of one in a pod or a stateful set.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, storage};
use crate::meta_validate::{invalid_each, template_metadata};
use crate::object::Object;
use crate::quantity::Quantity;
use crate::{json, label_selector, names};
use serde_json::Value;

/// How far a change of size has come, by resource.
const RESIZE_STATUSES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The template of a pod's own claim: of the metadata, labels and annotations alone.
pub fn template(template: &Value, path: &Path) -> ErrorList {
    let metadata = json::get(template, "metadata");
    let mut errors = template_metadata(metadata, &path.child("metadata"));
    let claim = json::get(template, "spec");
    errors.extend(spec(claim, None, &path.child("spec")));
    errors
}

/// A PersistentVolumeClaimSpec. What `old` had wrong may stay wrong.
pub fn spec(spec: &Value, old: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if json::list(spec, "accessModes").is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(&path.child("accessModes"), detail));
    }
    let selector = json::get(spec, "selector");
    errors.extend(label_selector::validate(selector, &path.child("selector")));
    errors.extend(storage::access_modes(spec, path));
    let size_path = path.child("resources").key("storage");
    let requests = json::at(spec, &["resources", "requests"]);
    if json::has(requests, "storage") {
        let size = storage::quantity(requests, "storage");
        errors.extend(storage::positive(size, &size_path));
    } else {
        errors.push(FieldError::required(&size_path, ""));
    }
    let class = json::text(spec, "storageClassName");
    if !class.is_empty() {
        errors.extend(storage::class_name(class, &path.child("storageClassName")));
    }
    if let Some(mode) = json::some(spec, "volumeMode").and_then(Value::as_str) {
        let path = path.child("volumeMode");
        checks::one_of(&mut errors, mode, storage::VOLUME_MODES, &path);
    }
    errors.extend(sources(spec, old, path));
    let attributes = json::text(spec, "volumeAttributesClassName");
    if !attributes.is_empty() {
        let path = path.child("volumeAttributesClassName");
        errors.extend(storage::class_name(attributes, &path));
    }
    errors
}

fn sources(spec: &Value, old: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let lenient = old.is_some_and(|old| {
        ["dataSource", "dataSourceRef"]
            .iter()
            .any(|field| json::has(json::get(old, field), "apiGroup"))
    });
    let [source, reference] = ["dataSource", "dataSourceRef"].map(|field| json::some(spec, field));
    if let Some(source) = source {
        errors.extend(data_source(source, lenient, &path.child("dataSource")));
    }
    let namespace = reference.map_or("", |reference| json::text(reference, "namespace"));
    if let Some(reference) = reference {
        let path = path.child("dataSourceRef");
        errors.extend(data_source(reference, lenient, &path));
        if !namespace.is_empty() {
            let path = path.child("namespace");
            invalid_each(&mut errors, &path, namespace, names::dns_label(namespace));
        }
    }
    // Upstream puts a path where the value belongs, which shows as an empty object.
    let shown = Value::Object(serde_json::Map::new());
    if let (Some(source), Some(reference)) = (source, reference) {
        let same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|field| json::get(source, field) == json::get(reference, field));
        if !namespace.is_empty() {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(FieldError::invalid(path, shown, detail));
        } else if !same {
            errors.push(FieldError::invalid(path, shown, "must match dataSourceRef"));
        }
    }
    errors
}

fn data_source(source: &Value, lenient: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    checks::required(&mut errors, source, "name", path);
    checks::required(&mut errors, source, "kind", path);
    let [group, kind] = ["apiGroup", "kind"].map(|field| json::text(source, field));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    if !group.is_empty() && !lenient {
        let details = names::dns_subdomain(group);
        invalid_each(&mut errors, &path.child("apiGroup"), group, details);
    }
    errors
}

/// An update of the claim itself.
pub fn update(new: &Object, old: &Object) -> ErrorList {
    let path = Path::root("spec");
    let [now, before] = [new, old].map(|o| o.get(&["spec"]).unwrap_or(&Value::Null));
    let mut errors = spec(now, Some(before), &path);
    let [beta, old_beta] = [new, old].map(|o| o.annotation(storage::BETA_CLASS));
    let moves = becomes_field(now, before, beta, old_beta);
    if !moves && beta.unwrap_or("") != old_beta.unwrap_or("") {
        let path = Path::root("metadata")
            .child("annotations")
            .key(storage::BETA_CLASS);
        let value = beta.unwrap_or("");
        errors.push(FieldError::invalid(&path, value, names::IMMUTABLE));
    }
    let munged = munged(new, now, before, old_beta, moves);
    if !json::same(&munged, before) {
        let mut lines = Vec::new();
        checks::changes(before, &munged, "", &mut lines);
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{}\n",
            lines.join("\n")
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors.extend(shrunk(now, before, old));
    checks::immutable(&mut errors, now, before, "volumeMode", &Path::default());
    errors.extend(attributes_class(now, before, old));
    errors
}

/// True when the class goes from the annotation into the field.
fn becomes_field(now: &Value, before: &Value, beta: Option<&str>, old_beta: Option<&str>) -> bool {
    let field = json::some(now, "storageClassName").and_then(Value::as_str);
    old_beta.is_some()
        && !json::has(before, "storageClassName")
        && field == old_beta
        && (beta.is_none() || beta == old_beta)
}

/// The new spec with all that may change put back to what it was.
fn munged(
    claim: &Object,
    now: &Value,
    before: &Value,
    old_beta: Option<&str>,
    moves: bool,
) -> Value {
    let mut munged = now.clone();
    let Some(map) = munged.as_object_mut() else {
        return munged;
    };
    let mut put_back = |field: &str| match before.get(field) {
        Some(value) => drop(map.insert(field.to_owned(), value.clone())),
        None => drop(map.remove(field)),
    };
    if json::text(before, "volumeName").is_empty() {
        put_back("volumeName");
    }
    let class = json::some(now, "storageClassName").and_then(Value::as_str);
    let from_none = class.is_some()
        && !json::has(before, "storageClassName")
        && old_beta.is_none_or(|beta| Some(beta) == class);
    if moves || from_none {
        put_back("storageClassName");
    }
    if claim.str(&["status", "phase"]) == "Bound" {
        put_back("volumeAttributesClassName");
        let size = json::at(before, &["resources", "requests", "storage"]).clone();
        if let Some(requests) = munged.pointer_mut("/resources/requests") {
            requests["storage"] = size;
        }
    }
    munged
}

/// A claim shrinks only back to what it has: so a failed expansion can be given up.
fn shrunk(now: &Value, before: &Value, old: &Object) -> ErrorList {
    let size = |spec: &Value| {
        let requests = json::at(spec, &["resources", "requests"]);
        storage::quantity(requests, "storage")
    };
    let capacity = old.get(&["status", "capacity"]).unwrap_or(&Value::Null);
    let there = storage::quantity(capacity, "storage");
    if size(now) >= size(before) || size(now) > there {
        return ErrorList::new();
    }
    let path = Path::root("spec")
        .child("resources")
        .child("requests")
        .child("storage");
    let detail = "field can not be less than status.capacity";
    vec![FieldError::forbidden(&path, detail)]
}

/// The class of attributes that is in force cannot be given up.
fn attributes_class(now: &Value, before: &Value, old: &Object) -> ErrorList {
    const FIELD: &str = "volumeAttributesClassName";
    const WHEN: &str = "when status.currentVolumeAttributesClassName is not nil";
    let current = old.get(&["status", "currentVolumeAttributesClassName"]);
    if json::get(now, FIELD) == json::get(before, FIELD) || current.is_none_or(Value::is_null) {
        return ErrorList::new();
    }
    let what = match json::some(now, FIELD).and_then(Value::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return ErrorList::new(),
    };
    let detail = format!("update to {what} is forbidden {WHEN}");
    vec![FieldError::forbidden(
        &Path::root("spec").child(FIELD),
        detail,
    )]
}

/// An update through `status`.
pub fn status(claim: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = claim.get(&["status"]).unwrap_or(&Value::Null);
    let path = Path::root("status");
    for (name, value) in json::entries(status, "capacity") {
        errors.extend(basic(value, &path.child("capacity").key(name)));
    }
    let statuses_path = path.child("allocatedResourceStatuses");
    for (name, value) in json::entries(status, "allocatedResourceStatuses") {
        errors.extend(resource_key(name, &statuses_path));
        if !RESIZE_STATUSES.iter().any(|status| value == status) {
            // Upstream shows the name of the resource.
            let error = FieldError::not_supported(&statuses_path, name, RESIZE_STATUSES);
            errors.push(error);
        }
    }
    let allocated_path = path.child("allocatedResources");
    for (name, value) in json::entries(status, "allocatedResources") {
        let wrong = resource_key(name, &allocated_path);
        if wrong.is_empty() {
            errors.extend(basic(value, &allocated_path.key(name)));
        }
        errors.extend(wrong);
    }
    errors
}

/// Names without a domain are those of Kubernetes, which knows `storage` alone.
fn resource_key(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, name, names::qualified_name(name));
    let native = crate::pod_spec::resources::is_native(name);
    if errors.is_empty() && native && name != "storage" {
        errors.push(FieldError::not_supported(path, name, &["storage"]));
    }
    errors
}

/// A quantity that is not negative.
pub fn basic(value: &Value, path: &Path) -> ErrorList {
    let quantity = Quantity::from_value(value).unwrap_or(Quantity::ZERO);
    if quantity.value() >= 0 {
        return ErrorList::new();
    }
    let detail = "must be a valid resource quantity";
    vec![FieldError::invalid(path, quantity.value(), detail)]
}
