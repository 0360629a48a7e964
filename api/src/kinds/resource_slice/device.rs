//! What is wrong with one device of a slice.

use super::validate::{counters, taints};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::devices::{binding_conditions, each_of_set, names as device_names, policy};
use crate::kinds::storage;
use crate::meta_validate::invalid_each;
use crate::pod_spec::validate::node_selector;
use crate::{json, names};
use serde_json::Value;

const PROPERTIES_MAX: usize = 32;
const VALUES_MAX: usize = 48;
const VALUE_BYTES_MAX: usize = 64;
const CONSUMPTIONS_MAX: usize = 2;
/// A domain, a slash and an identifier.
const KEY_BYTES_MAX: usize = 63 + 1 + 32;
const VALUE_KINDS: [&str; 4] = ["bool", "int", "string", "version"];

/// `per_device` when each device says for itself where it is.
pub fn device(device: &Value, before: Option<&Value>, per_device: bool, path: &Path) -> ErrorList {
    let mut errors = device_names::label(json::text(device, "name"), &path.child("name"));
    let size = |map: &str| json::entries(device, map).count();
    let properties = size("attributes") + size("capacity");
    for (count, max, what) in [
        (properties, PROPERTIES_MAX, "attributes and capacities"),
        (size("attributes"), VALUES_MAX, "attribute values"),
    ] {
        if count > max {
            let detail = format!("the total number of {what} must not exceed {max}");
            errors.push(FieldError::invalid(path, count, detail));
        }
    }
    let attributes_path = path.child("attributes");
    for (name, value) in json::entries(device, "attributes") {
        errors.extend(device_names::qualified(name, &attributes_path));
        errors.extend(attribute(value, &attributes_path.key(&shortened(name))));
    }
    let shared = json::flag(device, "allowMultipleAllocations");
    let capacity_path = path.child("capacity");
    for (name, value) in json::entries(device, "capacity") {
        errors.extend(device_names::qualified(name, &capacity_path));
        errors.extend(capacity(
            value,
            shared,
            &capacity_path.key(&shortened(name)),
        ));
    }
    errors.extend(taints(device, before, path));
    let consumptions = json::list(device, "consumesCounters");
    errors.extend(each_of_set(
        consumptions,
        CONSUMPTIONS_MAX,
        &path.child("consumesCounters"),
        consumption,
        |item| json::text(item, "counterSet").to_owned(),
    ));
    errors.extend(nodes(device, per_device, path));
    errors.extend(binding_conditions(device, path));
    errors
}

/// A name that is too long to stand in a path is cut in its middle.
fn shortened(name: &str) -> String {
    if name.len() <= KEY_BYTES_MAX {
        return name.to_owned();
    }
    let remaining = KEY_BYTES_MAX - 3;
    let head = name.get(..remaining.div_ceil(2)).unwrap_or("");
    let tail = name.get(name.len() - remaining / 2..).unwrap_or("");
    format!("{head}...{tail}")
}

fn attribute(attribute: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(text) = json::some(attribute, "string").and_then(Value::as_str)
        && text.len() > VALUE_BYTES_MAX
    {
        errors.push(FieldError::too_long(&path.child("string"), VALUE_BYTES_MAX));
    }
    if let Some(version) = json::some(attribute, "version").and_then(Value::as_str) {
        let path = path.child("version");
        if !device_names::is_semantic_version(version) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(FieldError::invalid(&path, version, detail));
        }
        if version.len() > VALUE_BYTES_MAX {
            errors.push(FieldError::too_long(&path, VALUE_BYTES_MAX));
        }
    }
    let set = VALUE_KINDS.iter().filter(|kind| json::has(attribute, kind));
    let detail = "exactly one value must be specified";
    match set.count() {
        0 => errors.push(FieldError::invalid(path, "", detail)),
        1 => {}
        _ => {
            let error = FieldError::invalid(path, attribute.clone(), detail);
            errors.push(error.shown_as(attribute_in_go(attribute)));
        }
    }
    errors
}

/// The names of the fields differ from those on the wire.
fn attribute_in_go(attribute: &Value) -> String {
    let fields = [
        ("IntValue", "int"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("VersionValue", "version"),
        ("IntValues", "ints"),
        ("BoolValues", "bools"),
        ("StringValues", "strings"),
        ("VersionValues", "versions"),
    ];
    let texts: Vec<String> = fields
        .iter()
        .map(|(go, wire)| format!("\"{go}\":{}", json::get(attribute, wire)))
        .collect();
    format!("{{{}}}", texts.join(","))
}

fn capacity(capacity: &Value, shared: bool, path: &Path) -> ErrorList {
    let Some(policy) = json::some(capacity, "requestPolicy") else {
        return ErrorList::new();
    };
    let path = path.child("requestPolicy");
    if shared {
        policy::policy(policy, storage::quantity(capacity, "value"), &path)
    } else {
        let detail = "allowMultipleAllocations must be true";
        vec![FieldError::forbidden(&path, detail)]
    }
}

fn consumption(consumption: &Value, path: &Path) -> ErrorList {
    let set_path = path.child("counterSet");
    let mut errors = match json::text(consumption, "counterSet") {
        "" => vec![FieldError::required(&set_path, "")],
        name => device_names::label(name, &set_path),
    };
    let all = json::get(consumption, "counters");
    errors.extend(counters(all, &path.child("counters")));
    errors
}

fn nodes(device: &Value, per_device: bool, path: &Path) -> ErrorList {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    let mut errors = ErrorList::new();
    if !per_device {
        let fields = ["nodeName", "nodeSelector", "allNodes"];
        if fields.iter().any(|field| json::has(device, field)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                          `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        return errors;
    }
    let mut set = Vec::new();
    if let Some(node) = json::some(device, "nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        if node.is_empty() {
            errors.push(FieldError::invalid(&path, node, "must not be empty"));
        } else {
            set.push("`nodeName`");
            invalid_each(&mut errors, &path, node, names::dns_subdomain(node));
        }
    }
    if let Some(selector) = json::some(device, "nodeSelector") {
        set.push("`nodeSelector`");
        errors.extend(node_selector(selector, &path.child("nodeSelector")));
    }
    match json::some(device, "allNodes").and_then(Value::as_bool) {
        Some(true) => set.push("`allNodes`"),
        Some(false) => {
            let detail = "must be either unset or set to true";
            errors.push(FieldError::invalid(&path.child("allNodes"), false, detail));
        }
        None => {}
    }
    match set.as_slice() {
        [] => errors.push(FieldError::required(path, ONE)),
        [_] => {}
        several => {
            let value = format!("{{{}}}", several.join(", "));
            errors.push(FieldError::invalid(path, value, ONE));
        }
    }
    errors
}
