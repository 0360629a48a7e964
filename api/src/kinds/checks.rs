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

/// As `immutable`, for a value that is shown as Go has it.
pub fn immutable_as(
    errors: &mut ErrorList,
    type_name: &str,
    new: &Value,
    old: &Value,
    name: &str,
    path: &Path,
) {
    let (new, old) = (json::get(new, name), json::get(old, name));
    if !json::same(new, old) {
        let error = FieldError::invalid(&path.child(name), new.clone(), names::IMMUTABLE);
        errors.push(error.as_go(type_name));
    }
}

/// As `immutable`, for a string: one that is gone is shown as empty.
pub fn immutable_text(errors: &mut ErrorList, new: &Value, old: &Value, name: &str, path: &Path) {
    let (new, old) = (json::text(new, name), json::text(old, name));
    if new != old {
        let error = FieldError::invalid(&path.child(name), new, names::IMMUTABLE);
        errors.push(error);
    }
}

/// The type of selectors, as errors show them.
pub const LABEL_SELECTOR: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";

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

/// Go's value of a number that nobody gave.
fn or_zero(value: &Value) -> Value {
    if value.is_null() {
        0.into()
    } else {
        value.clone()
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
            .map(|d| FieldError::invalid(path, or_zero(port), d)),
    );
}

/// A string that is no DNS label, subdomain or other name.
pub fn each(errors: &mut ErrorList, path: &Path, value: &str, details: Vec<String>) {
    crate::meta_validate::invalid_each(errors, path, value, details);
}

/// A name that is required and is one segment of a path.
pub fn required_segment(errors: &mut ErrorList, object: &Value, name: &str, path: &Path) {
    let value = json::text(object, name);
    let path = path.child(name);
    if value.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        each(errors, &path, value, names::path_segment(value));
    }
}

/// A path below a domain: `acme.io/foo`.
pub fn domain_prefixed_path(errors: &mut ErrorList, value: &str, path: &Path) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let parts = value.split_once('/');
    let Some((host, rest)) = parts.filter(|(host, rest)| !host.is_empty() && !rest.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(path, value, detail));
        return;
    };
    each(errors, path, host, names::dns_subdomain(host));
    each(errors, path, rest, names::http_path(rest));
}

/// Conditions of the common form: `type`, `status`, `reason`, `lastTransitionTime`.
pub fn conditions(conditions: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = Vec::new();
    for (index, one) in conditions.iter().enumerate() {
        let path = path.index(index);
        let kind = json::text(one, "type");
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        seen.push(kind);
        condition(&mut errors, one, &path);
    }
    errors
}

fn condition(errors: &mut ErrorList, condition: &Value, path: &Path) {
    const REASON_BYTES_MAX: usize = 1024;
    const MESSAGE_BYTES_MAX: usize = 32 * 1024;
    let kind = json::text(condition, "type");
    each(
        errors,
        &path.child("type"),
        kind,
        names::qualified_name(kind),
    );
    let status = json::text(condition, "status");
    one_of(
        errors,
        status,
        &["False", "True", "Unknown"],
        &path.child("status"),
    );
    let generation = json::int(condition, "observedGeneration").unwrap_or(0);
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        let path = path.child("observedGeneration");
        errors.push(FieldError::invalid(&path, generation, detail));
    }
    required(errors, condition, "lastTransitionTime", path);
    required(errors, condition, "reason", path);
    let reason = json::text(condition, "reason");
    if !reason.is_empty() {
        each(
            errors,
            &path.child("reason"),
            reason,
            names::condition_reason(reason),
        );
    }
    if reason.len() > REASON_BYTES_MAX {
        errors.push(FieldError::too_long(
            &path.child("reason"),
            REASON_BYTES_MAX,
        ));
    }
    if json::text(condition, "message").len() > MESSAGE_BYTES_MAX {
        errors.push(FieldError::too_long(
            &path.child("message"),
            MESSAGE_BYTES_MAX,
        ));
    }
}

/// A number that is not negative, or a percentage.
pub fn count_or_percent(value: &Value, path: &Path) -> ErrorList {
    let details = match value {
        Value::String(text) => names::percentage(text),
        other if other.as_i64().unwrap_or(0) < 0 => vec![names::MUST_NOT_BE_NEGATIVE.to_owned()],
        _ => Vec::new(),
    };
    let errors = details
        .into_iter()
        .map(|d| FieldError::invalid(path, value.clone(), d));
    errors.collect()
}

/// The number before the percent sign, or the number, in quotes or not.
pub fn amount(value: &Value) -> i64 {
    let quoted = || value.as_str()?.parse().ok();
    percent(value)
        .or(value.as_i64())
        .or_else(quoted)
        .unwrap_or(0)
}

fn percent(value: &Value) -> Option<i64> {
    let text = value
        .as_str()
        .filter(|text| names::percentage(text).is_empty())?;
    text.strip_suffix('%')?.parse().ok()
}

pub fn at_most_all(value: &Value, path: &Path) -> ErrorList {
    if percent(value).is_some_and(|percent| percent > 100) {
        let detail = "must not be greater than 100%";
        vec![FieldError::invalid(path, value.clone(), detail)]
    } else {
        ErrorList::new()
    }
}

/// The fields in which two values differ, as lines of `- path: old` and `+ path: new`.
pub fn changes(old: &Value, new: &Value, path: &str, lines: &mut Vec<String>) {
    if json::same(old, new) {
        return;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(now)) => {
            let mut keys: Vec<&String> = before.keys().chain(now.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                changes(json::get(old, key), json::get(new, key), &path, lines);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (index, (before, now)) in before.iter().zip(now).enumerate() {
                changes(before, now, &format!("{path}[{index}]"), lines);
            }
        }
        _ => {
            lines.push(format!("- {path}: {old}"));
            lines.push(format!("+ {path}: {new}"));
        }
    }
}
