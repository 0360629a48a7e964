//! What is wrong with an event: a lenient rule for the core view, a strict one on top for the
//! view of events.k8s.io. Both see the stored form.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::{json, names};

const SHORT_TEXT_BYTES_MAX: usize = 128;
const NOTE_BYTES_MAX: usize = 1024;

/// What holds in both views. Only an event with `eventTime` is held to the newer rules.
pub fn legacy(event: &Object, controller_field: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let involved = event.str(&["involvedObject", "namespace"]);
    let namespace = event.namespace();
    let namespace_error = || {
        let path = Path::root("involvedObject").child("namespace");
        FieldError::invalid(&path, involved, "does not match event.namespace")
    };
    if event.str(&["eventTime"]).is_empty() {
        let agrees = match involved {
            "" => matches!(namespace, "" | "default"),
            involved => involved == namespace,
        };
        if !agrees {
            errors.push(namespace_error());
        }
    } else {
        if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.push(namespace_error());
        }
        errors.extend(reported(event, controller_field));
    }
    let path = Path::root("namespace");
    invalid_each(
        &mut errors,
        &path,
        namespace,
        names::dns_subdomain(namespace),
    );
    errors
}

fn reported(event: &Object, controller_field: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let controller = event.str(&["reportingComponent"]);
    let path = Path::root(controller_field);
    if controller.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    invalid_each(
        &mut errors,
        &path,
        controller,
        names::qualified_name(controller),
    );
    for (field, bytes_max, needed) in [
        ("reportingInstance", SHORT_TEXT_BYTES_MAX, true),
        ("action", SHORT_TEXT_BYTES_MAX, true),
        ("reason", SHORT_TEXT_BYTES_MAX, true),
        ("message", NOTE_BYTES_MAX, false),
    ] {
        let text = event.str(&[field]);
        let path = Path::root(field);
        if needed && text.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if text.len() > bytes_max {
            let detail = format!("can have at most {bytes_max} characters");
            errors.push(FieldError::invalid(&path, "", detail));
        }
    }
    errors
}

/// What holds on top on create through events.k8s.io.
pub fn strict(event: &Object) -> ErrorList {
    let mut errors = series(event);
    if event.str(&["eventTime"]).is_empty() {
        errors.push(FieldError::required(&Path::root("eventTime"), ""));
    }
    let kind = event.str(&["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&Path::root("type"), "", detail));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if event
            .get(&[field])
            .is_some_and(|value| !json::is_empty(value))
        {
            errors.push(FieldError::invalid(
                &Path::root(field),
                "",
                "needs to be unset",
            ));
        }
    }
    errors
}

/// What holds on top on update through events.k8s.io: only the series may change.
pub fn strict_update(new: &Object, old: &Object) -> ErrorList {
    let (new_value, old_value) = (new.to_value(), old.to_value());
    let mut errors = ErrorList::new();
    if json::get(&new_value, "series") != json::get(&old_value, "series") {
        errors.extend(series(new));
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
    ] {
        checks::immutable(&mut errors, &new_value, &old_value, field, &Path::default());
    }
    if new.str(&["reportingComponent"]) != old.str(&["reportingComponent"]) {
        let path = Path::root("reportingController");
        let value = new.str(&["reportingComponent"]);
        errors.push(FieldError::invalid(&path, value, names::IMMUTABLE));
    }
    let field = "reportingInstance";
    checks::immutable(&mut errors, &new_value, &old_value, field, &Path::default());
    errors
}

fn series(event: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    if event
        .get(&["series"])
        .is_none_or(serde_json::Value::is_null)
    {
        return errors;
    }
    if event.i64(&["series", "count"]).unwrap_or(0) < 2 {
        let path = Path::root("series.count");
        errors.push(FieldError::invalid(&path, "", "should be at least 2"));
    }
    if event.str(&["series", "lastObservedTime"]).is_empty() {
        errors.push(FieldError::required(
            &Path::root("series.lastObservedTime"),
            "",
        ));
    }
    errors
}
