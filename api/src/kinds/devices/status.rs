//! The status of a claim: who holds it, which devices it got, and what drivers say of them.

use super::claim::{REQUESTS_MAX, Requests};
use super::{CONFIGURATIONS_MAX, binding_conditions, configuration, each, each_of_set, names, raw};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::storage::driver_name;
use crate::pod_spec::validate::node_selector;
use crate::{json, names as texts};
use serde_json::Value;

const HOLDERS_MAX: usize = 256;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 * 1024;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_ADDRESS_BYTES_MAX: usize = 128;
const ADDRESSES_MAX: usize = 16;

/// One device, or a share of one: driver, pool, device, share.
pub fn identity(device: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| json::text(device, field).to_owned())
}

fn identity_text(device: &Value) -> String {
    let [driver, pool, device, share] = identity(device);
    let text = format!("{driver}/{pool}/{device}");
    if share.is_empty() {
        text
    } else {
        format!("{text}/{share}")
    }
}

fn results(status: &Value) -> &[Value] {
    json::list(json::at(status, &["allocation", "devices"]), "results")
}

/// Drops what drivers said of devices that are given back.
pub fn drop_deallocated(status: &mut Value, old: &Value) {
    let kept: Vec<[String; 4]> = results(status).iter().map(identity).collect();
    let gone: Vec<[String; 4]> = results(old)
        .iter()
        .map(identity)
        .filter(|device| !kept.contains(device))
        .collect();
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else {
        return;
    };
    devices.retain(|device| !gone.contains(&identity(device)));
    if devices.is_empty() {
        status
            .as_object_mut()
            .map(|status| status.remove("devices"));
    }
}

/// An update of the status. `requests` are the claim's.
pub fn update(
    status: &Value,
    old: &Value,
    is_deleting: bool,
    requests: &Requests<'_>,
) -> ErrorList {
    let path = Path::root("status");
    let holders_path = path.child("reservedFor");
    let holders = json::list(status, "reservedFor");
    let uid = |holder: &Value| json::text(holder, "uid").to_owned();
    let mut errors = each_of_set(holders, HOLDERS_MAX, &holders_path, holder, uid);
    let allocated: Vec<[String; 4]> = results(status).iter().map(identity).collect();
    errors.extend(each_of_set(
        json::list(status, "devices"),
        usize::MAX,
        &path.child("devices"),
        |device, path| device_status(device, &allocated, path),
        identity_text,
    ));
    let allocation = json::some(status, "allocation");
    if !holders.is_empty() {
        let before = json::list(old, "reservedFor");
        if allocation.is_none() {
            let detail = "may not be specified when `allocated` is not set";
            errors.push(FieldError::forbidden(&holders_path, detail));
        } else if is_deleting && holders.iter().any(|holder| !before.contains(holder)) {
            let detail = "new entries may not be added while `deallocationRequested` or \
                          `deletionTimestamp` are set";
            errors.push(FieldError::forbidden(&holders_path, detail));
        }
    }
    let allocation_path = path.child("allocation");
    match (json::some(old, "allocation"), allocation) {
        (Some(before), Some(now)) if !json::same(before, now) => {
            let error = FieldError::invalid(&allocation_path, now.clone(), texts::IMMUTABLE);
            errors.push(error.as_go("io.k8s.api.resource.v1.AllocationResult"));
        }
        (None, Some(now)) => errors.extend(allocation_result(now, requests, &allocation_path)),
        _ => {}
    }
    errors
}

fn holder(holder: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["resource", "name", "uid"] {
        checks::required(&mut errors, holder, field, path);
    }
    errors
}

fn allocation_result(allocation: &Value, requests: &Requests<'_>, path: &Path) -> ErrorList {
    let devices = json::get(allocation, "devices");
    let devices_path = path.child("devices");
    let mut errors = each(
        json::list(devices, "results"),
        REQUESTS_MAX,
        &devices_path.child("results"),
        |result, path| allocated_device(result, requests, path),
    );
    errors.extend(each(
        json::list(devices, "config"),
        2 * CONFIGURATIONS_MAX, // Those of the class and those of the claim.
        &devices_path.child("config"),
        |item, path| {
            let mut errors = ErrorList::new();
            checks::required_one_of(
                &mut errors,
                json::text(item, "source"),
                &["FromClaim", "FromClass"],
                &path.child("source"),
            );
            let names = json::list(item, "requests");
            errors.extend(requests.references(names, &path.child("requests")));
            errors.extend(configuration(item, path));
            errors
        },
    ));
    if let Some(selector) = json::some(allocation, "nodeSelector") {
        errors.extend(node_selector(selector, &path.child("nodeSelector")));
    }
    errors
}

fn allocated_device(result: &Value, requests: &Requests<'_>, path: &Path) -> ErrorList {
    let text = |field: &str| json::text(result, field);
    let mut errors = requests.reference(text("request"), &path.child("request"));
    errors.extend(driver_name(text("driver"), &path.child("driver")));
    errors.extend(names::pool(text("pool"), &path.child("pool")));
    errors.extend(names::label(text("device"), &path.child("device")));
    errors.extend(binding_conditions(result, path));
    if json::has(result, "shareID") {
        errors.extend(names::uid(text("shareID"), &path.child("shareID")));
    }
    errors
}

fn device_status(device: &Value, allocated: &[[String; 4]], path: &Path) -> ErrorList {
    let text = |field: &str| json::text(device, field);
    let mut errors = driver_name(text("driver"), &path.child("driver"));
    errors.extend(names::pool(text("pool"), &path.child("pool")));
    errors.extend(names::label(text("device"), &path.child("device")));
    if json::has(device, "shareID") {
        errors.extend(names::uid(text("shareID"), &path.child("shareID")));
    }
    if !allocated.contains(&identity(device)) {
        let detail = "must be an allocated device in the claim";
        errors.push(FieldError::invalid(path, identity_text(device), detail));
    }
    let conditions = json::list(device, "conditions");
    let conditions_path = path.child("conditions");
    if conditions.len() > CONDITIONS_MAX {
        let error = FieldError::too_many(&conditions_path, conditions.len(), CONDITIONS_MAX);
        errors.push(error);
    }
    errors.extend(checks::conditions(conditions, &conditions_path));
    if let Some(data) = json::some(device, "data") {
        errors.extend(raw(data, DATA_BYTES_MAX, &path.child("data")));
    }
    if let Some(data) = json::some(device, "networkData") {
        errors.extend(network_data(data, &path.child("networkData")));
    }
    errors
}

fn network_data(data: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, bytes_max) in [
        ("interfaceName", INTERFACE_BYTES_MAX),
        ("hardwareAddress", HARDWARE_ADDRESS_BYTES_MAX),
    ] {
        if json::text(data, field).len() > bytes_max {
            errors.push(FieldError::too_long(&path.child(field), bytes_max));
        }
    }
    let check = |address: &Value, path: &Path| {
        let address = address.as_str().unwrap_or("");
        let details = texts::interface_address(address).into_iter();
        details
            .map(|detail| FieldError::invalid(path, address, detail))
            .collect()
    };
    let addresses = json::list(data, "ips");
    let path = path.child("ips");
    errors.extend(each_of_set(
        addresses,
        ADDRESSES_MAX,
        &path,
        check,
        super::text_key,
    ));
    errors
}
