//! Checks that many kinds make of a field, in upstream's words.

use crate::field::{ErrorList, FieldError, Path};
use crate::{json, names};
use serde_json::Value;

/// An absent number counts as zero.
pub fn nonnegative(errors: &mut ErrorList, object: &Value, name: &str, path: &Path) {
    let value = json::int(object, name).unwrap_or(0);
    if value < 0 {
        errors.push(FieldError::invalid(
            &path.child(name),
            value,
            names::MUST_NOT_BE_NEGATIVE,
        ));
    }
}

/// A number that is either absent or at least one.
pub fn positive_if_set(errors: &mut ErrorList, object: &Value, name: &str, path: &Path) {
    if let Some(value) = json::int(object, name)
        && value <= 0
    {
        errors.push(FieldError::invalid(
            &path.child(name),
            value,
            "must be greater than 0",
        ));
    }
}

/// A field that an update may not change.
pub fn immutable(errors: &mut ErrorList, new: &Value, old: &Value, name: &str, path: &Path) {
    let (new, old) = (json::get(new, name), json::get(old, name));
    if !json::same(new, old) {
        errors.push(FieldError::invalid(
            &path.child(name),
            new.clone(),
            names::IMMUTABLE,
        ));
    }
}

/// A string that must be one of some, sorted. An empty one is a value like any other.
pub fn one_of(errors: &mut ErrorList, value: &str, supported: &[&str], path: &Path) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

/// As `one_of`, but an empty string is named as missing.
pub fn required_one_of(errors: &mut ErrorList, value: &str, supported: &[&str], path: &Path) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        one_of(errors, value, supported, path);
    }
}

pub fn required(errors: &mut ErrorList, object: &Value, name: &str, path: &Path) {
    if json::text(object, name).is_empty() {
        errors.push(FieldError::required(&path.child(name), ""));
    }
}

/// A port given by number or by name.
pub fn port_number_or_name(errors: &mut ErrorList, port: &Value, path: &Path) {
    let details = match port {
        Value::String(name) => names::port_name(name),
        other => names::port_number(other.as_i64().unwrap_or(0)),
    };
    errors.extend(
        details
            .into_iter()
            .map(|d| FieldError::invalid(path, port.clone(), d)),
    );
}
