//! ConfigMaps: plain data for pods.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

/// Data of a ConfigMap or Secret, all values together.
pub const DATA_BYTES_MAX: usize = 1024 * 1024;

pub const ROW: Resource = Resource {
    short_names: &["cm"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ConfigMap",
            plural: "configmaps",
            singular: "configmap",
            schema: "io.k8s.api.core.v1.ConfigMap",
        },
        &ConfigMap,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Data",
        "string",
        "How many keys it holds, of text and of binary data.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct ConfigMap;

impl Rules for ConfigMap {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "data", json!({}));
        if object.get(&["data"]).is_some_and(json::is_empty) {
            object.remove(&["data"]);
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = ErrorList::new();
        let mut bytes = 0;
        let binary = object.get(&["binaryData"]).unwrap_or(&Value::Null);
        let path = Path::root("data");
        for (key, value) in object.string_map(&["data"]) {
            invalid_each(&mut errors, &path.key(key), key, names::config_key(key));
            if binary.get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&path.key(key), key, detail));
            }
            bytes += value.len();
        }
        let path = Path::root("binaryData");
        for (key, value) in object.string_map(&["binaryData"]) {
            invalid_each(&mut errors, &path.key(key), key, names::config_key(key));
            bytes += decoded_bytes(value);
        }
        if bytes > DATA_BYTES_MAX {
            errors.push(FieldError::too_long(&Path::root("[]"), DATA_BYTES_MAX));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = immutable_data(new, old, &["data", "binaryData"]);
        errors.extend(self.validate_create(new));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let keys = ["data", "binaryData"].map(|field| object.string_map(&[field]).count());
        vec![
            object.name().into(),
            keys.iter().sum::<usize>().into(),
            print::age_of(object, now),
        ]
    }
}

/// Bytes behind a base64 text.
pub fn decoded_bytes(base64: &str) -> usize {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

/// What may not change once `immutable` is set, for ConfigMaps and Secrets.
pub fn immutable_data(new: &Object, old: &Object, fields: &[&str]) -> ErrorList {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if !old.bool(&["immutable"]) {
        return ErrorList::new();
    }
    let mut errors = ErrorList::new();
    if !new.bool(&["immutable"]) {
        errors.push(FieldError::forbidden(&Path::root("immutable"), DETAIL));
    }
    for field in fields {
        let values = [new, old].map(|object| object.get(&[field]).unwrap_or(&Value::Null));
        if !json::same(values[0], values[1]) {
            errors.push(FieldError::forbidden(&Path::root(field), DETAIL));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
