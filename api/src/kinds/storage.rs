//! What the kinds of storage share: names of drivers, parameters, access modes, sizes.

use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::invalid_each;
use crate::quantity::Quantity;
use crate::{json, names};
use serde_json::Value;

/// Parameters go to the driver in one message.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 * 1024;
const DRIVER_NAME_BYTES_MAX: usize = 63;

pub const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
pub const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
/// The annotation that named a class before there was a field for it.
pub const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The name of a CSI driver, in whatever case.
pub fn driver_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if name.len() > DRIVER_NAME_BYTES_MAX {
        errors.push(FieldError::too_long(path, DRIVER_NAME_BYTES_MAX));
    }
    let lower = name.to_lowercase();
    invalid_each(&mut errors, path, name, names::dns_subdomain(&lower));
    errors
}

/// Who makes the volumes of a class.
pub fn provisioner(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    let lower = name.to_lowercase();
    invalid_each(&mut errors, path, &lower, names::qualified_name(&lower));
    errors
}

/// What a class tells its driver.
pub fn parameters(parameters: &Value, may_be_empty: bool, path: &Path) -> ErrorList {
    let entries = parameters.as_object();
    let count = entries.map_or(0, serde_json::Map::len);
    if count > PARAMETERS_MAX {
        return vec![FieldError::too_long(path, PARAMETERS_MAX)];
    }
    let mut errors = ErrorList::new();
    let mut bytes = 0;
    for (key, value) in entries.into_iter().flatten() {
        if key.is_empty() {
            errors.push(FieldError::invalid(path, "", "field can not be empty."));
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > PARAMETERS_BYTES_MAX {
        errors.push(FieldError::too_long(path, PARAMETERS_BYTES_MAX));
    }
    if !may_be_empty && count == 0 {
        let detail = "must contain at least one key/value pair";
        errors.push(FieldError::required(path, detail));
    }
    errors
}

/// The access modes of a volume or a claim, where there are some.
pub fn access_modes(spec: &Value, path: &Path) -> ErrorList {
    let path = path.child("accessModes");
    let mut errors = ErrorList::new();
    let (mut one_pod, mut others) = (false, false);
    for mode in json::list(spec, "accessModes") {
        let mode = mode.as_str().unwrap_or("");
        if !ACCESS_MODES.contains(&mode) {
            errors.push(FieldError::not_supported(&path, mode, ACCESS_MODES));
        }
        if mode == "ReadWriteOncePod" {
            one_pod = true;
        } else if ACCESS_MODES.contains(&mode) {
            others = true;
        }
    }
    if one_pod && others {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// Modes in short: `RWO,ROX,RWX,RWOP`, each once.
pub fn short_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let there = SHORT
        .iter()
        .filter(|(long, _)| modes.iter().any(|mode| mode == long))
        .map(|(_, short)| *short);
    there.collect::<Vec<_>>().join(",")
}

/// A size of which there must be some.
pub fn positive(size: Quantity, path: &Path) -> ErrorList {
    if size > Quantity::ZERO {
        return ErrorList::new();
    }
    vec![FieldError::invalid(
        path,
        size.to_string(),
        "must be greater than zero",
    )]
}

pub fn nonnegative(size: Quantity, path: &Path) -> ErrorList {
    if size >= Quantity::ZERO {
        return ErrorList::new();
    }
    vec![FieldError::invalid(
        path,
        size.to_string(),
        names::MUST_NOT_BE_NEGATIVE,
    )]
}

/// A quantity under a name; zero where there is none or it is none.
pub fn quantity(object: &Value, name: &str) -> Quantity {
    Quantity::from_value(json::get(object, name)).unwrap_or(Quantity::ZERO)
}

/// A class by name, where one is named.
pub fn class_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, name, names::dns_subdomain(name));
    errors
}
