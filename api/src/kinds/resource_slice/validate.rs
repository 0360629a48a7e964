//! What is wrong with a slice: its pool, where its devices are, its counters.

use super::device;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::devices::{each_of_set, name_key, names as device_names};
use crate::kinds::storage::driver_name;
use crate::kinds::{checks, devices};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::pod_spec::validate::node_selector;
use crate::{json, names};
use serde_json::Value;

const DEVICES_MAX: usize = 128;
/// With taints, counters or lists of values a device takes more room.
const RICH_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
pub const COUNTERS_MAX: usize = 32;

pub fn slice(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let old_spec = old.and_then(|old| old.get(&["spec"]));
    let mut errors = driver_name(json::text(spec, "driver"), &path.child("driver"));
    errors.extend(pool(json::get(spec, "pool"), &path.child("pool")));
    if let Some(old) = old_spec {
        let pools = [spec, old].map(|spec| json::get(spec, "pool"));
        let pool_path = path.child("pool");
        checks::immutable(&mut errors, pools[0], pools[1], "name", &pool_path);
        checks::immutable(&mut errors, spec, old, "driver", &path);
        checks::immutable(&mut errors, spec, old, "nodeName", &path);
    }
    errors.extend(nodes(spec, &path));
    let all = json::list(spec, "devices");
    if json::has(spec, "sharedCounters") && json::has(spec, "devices") {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(FieldError::invalid(&path, "", detail));
    }
    let rich = |device: &Value| {
        ["taints", "consumesCounters"]
            .iter()
            .any(|list| !json::list(device, list).is_empty())
    };
    let max = if all.iter().any(rich) {
        RICH_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let old_devices = old_spec.map_or(&[][..], |old| json::list(old, "devices"));
    let per_device = json::flag(spec, "perDeviceNodeSelection");
    errors.extend(each_of_set(
        all,
        max,
        &path.child("devices"),
        |item, path| {
            let name = json::text(item, "name");
            let before = old_devices.iter().find(|o| json::text(o, "name") == name);
            device::device(item, before, per_device, path)
        },
        name_key,
    ));
    errors.extend(each_of_set(
        json::list(spec, "sharedCounters"),
        COUNTER_SETS_MAX,
        &path.child("sharedCounters"),
        |set, path| {
            let name_path = path.child("name");
            let mut errors = match json::text(set, "name") {
                "" => vec![FieldError::required(&name_path, "")],
                name => device_names::label(name, &name_path),
            };
            errors.extend(counters(
                json::get(set, "counters"),
                &path.child("counters"),
            ));
            errors
        },
        name_key,
    ));
    errors
}

/// Counters by name.
pub fn counters(counters: &Value, path: &Path) -> ErrorList {
    let count = counters.as_object().map_or(0, serde_json::Map::len);
    if count == 0 {
        return vec![FieldError::required(path, "")];
    }
    if count > COUNTERS_MAX {
        return vec![FieldError::too_many(path, count, COUNTERS_MAX)];
    }
    let names = counters.as_object().into_iter().flatten();
    names
        .flat_map(|(name, _)| device_names::label(name, path))
        .collect()
}

fn pool(pool: &Value, path: &Path) -> ErrorList {
    let mut errors = device_names::pool(json::text(pool, "name"), &path.child("name"));
    let count = json::int(pool, "resourceSliceCount").unwrap_or(0);
    if count <= 0 {
        let path = path.child("resourceSliceCount");
        let detail = "must be greater than zero";
        errors.push(FieldError::invalid(&path, count, detail));
    }
    let generation = json::int(pool, "generation").unwrap_or(0);
    if generation < 0 {
        let path = path.child("generation");
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path, generation, detail));
    }
    errors
}

/// Where the devices are: said in exactly one of four ways.
fn nodes(spec: &Value, path: &Path) -> ErrorList {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                       `perDeviceNodeSelection` is required";
    let mut errors = ErrorList::new();
    let mut set = Vec::new();
    if let Some(node) = json::some(spec, "nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        if node.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            errors.push(FieldError::invalid(&path, node, detail));
        } else {
            set.push("`nodeName`");
            invalid_each(&mut errors, &path, node, names::dns_subdomain(node));
        }
    }
    if let Some(selector) = json::some(spec, "nodeSelector") {
        set.push("`nodeSelector`");
        let path = path.child("nodeSelector");
        errors.extend(node_selector(selector, &path));
        let terms = json::list(selector, "nodeSelectorTerms");
        if terms.len() != 1 {
            let path = path.child("nodeSelectorTerms");
            let shown =
                crate::go_value::internal_list("io.k8s.api.core.v1.NodeSelectorTerm", terms);
            let detail = "must have exactly one node selector term";
            let error = FieldError::invalid(&path, Value::from(terms), detail);
            errors.push(error.shown_as(shown));
        }
    }
    for (field, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        match json::some(spec, field).and_then(Value::as_bool) {
            Some(true) => set.push(shown),
            Some(false) => {
                let detail = "must be either unset or set to true";
                errors.push(FieldError::invalid(&path.child(field), false, detail));
            }
            None => {}
        }
    }
    match set.as_slice() {
        [] => errors.push(FieldError::required(path, ONE)),
        [_] => {}
        several => {
            let value = format!("{{{}}}", several.join(", "));
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
    errors
}

/// A taint that is not as it was.
pub fn taints(device: &Value, before: Option<&Value>, path: &Path) -> ErrorList {
    const TAINTS_MAX: usize = 16;
    let taints = json::list(device, "taints");
    if before.is_some_and(|before| json::list(before, "taints") == taints) {
        return ErrorList::new();
    }
    devices::each(taints, TAINTS_MAX, &path.child("taints"), devices::taint)
}
