//! Secrets: data that is not for everyone.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::config_map::{DATA_BYTES_MAX, decoded_bytes, immutable_data};
use crate::kinds::row::{self, Names, column};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub const ROW: Resource = Resource {
    selectable_fields: &["type"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "Secret",
            plural: "secrets",
            singular: "secret",
            schema: "io.k8s.api.core.v1.Secret",
        },
        &Secret,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Type",
        "string",
        "What the data is for, and what keys it must have.",
    ),
    column("Data", "string", "How many keys it holds."),
    row::AGE,
];

#[derive(Debug)]
struct Secret;

impl Rules for Secret {
    fn default(&self, object: &mut Object) {
        take_in_string_data(object);
        if object.get(&["data"]).is_some_and(json::is_empty) {
            object.remove(&["data"]);
        }
        if object.str(&["type"]).is_empty() {
            object.set(&["type"], "Opaque".into());
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("data");
        let mut errors = ErrorList::new();
        let mut bytes = 0;
        for (key, value) in object.string_map(&["data"]) {
            invalid_each(&mut errors, &path.key(key), key, names::config_key(key));
            bytes += decoded_bytes(value);
        }
        if bytes > DATA_BYTES_MAX {
            errors.push(FieldError::too_long(&path, DATA_BYTES_MAX));
        }
        errors.extend(keys_of_type(object, &path));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        let (new_value, old_value) = (new.to_value(), old.to_value());
        checks::immutable(
            &mut errors,
            &new_value,
            &old_value,
            "type",
            &Path::default(),
        );
        errors.extend(immutable_data(new, old, &["data"]));
        errors.extend(self.validate_create(new));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["type"]).into(),
            object.string_map(&["data"]).count().into(),
            print::age_of(object, now),
        ]
    }
}

/// `stringData` is write-only: it overlays `data`.
fn take_in_string_data(object: &mut Object) {
    let Some(Value::Object(texts)) = object.remove(&["stringData"]) else {
        return;
    };
    for (key, text) in texts {
        let encoded = STANDARD.encode(text.as_str().unwrap_or(""));
        object.set(&["data", &key], encoded.into());
    }
}

fn keys_of_type(object: &Object, path: &Path) -> ErrorList {
    let data = object.get(&["data"]).unwrap_or(&Value::Null);
    let has = |key: &str| data.get(key).is_some();
    let missing = |keys: &[&str]| -> ErrorList {
        keys.iter()
            .map(|key| FieldError::required(&path.key(key), ""))
            .collect()
    };
    match object.str(&["type"]) {
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            if object.annotation(annotation).unwrap_or("").is_empty() {
                let path = Path::root("metadata").child("annotations").key(annotation);
                return vec![FieldError::required(&path, "")];
            }
            ErrorList::new()
        }
        "kubernetes.io/dockercfg" => json_under(data, ".dockercfg", path),
        "kubernetes.io/dockerconfigjson" => json_under(data, ".dockerconfigjson", path),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            missing(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" if json::text(data, "ssh-privatekey").is_empty() => {
            missing(&["ssh-privatekey"])
        }
        "kubernetes.io/tls" => {
            let absent: Vec<&str> = ["tls.crt", "tls.key"]
                .into_iter()
                .filter(|key| !has(key))
                .collect();
            missing(&absent)
        }
        _ => ErrorList::new(),
    }
}

fn json_under(data: &Value, key: &str, path: &Path) -> ErrorList {
    let path = path.key(key);
    let Some(text) = data.get(key).and_then(Value::as_str) else {
        return vec![FieldError::required(&path, "")];
    };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    match serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        Ok(_) => ErrorList::new(),
        Err(error) => {
            vec![FieldError::invalid(
                &path,
                "<secret contents redacted>",
                error.to_string(),
            )]
        }
    }
}

#[cfg(test)]
mod tests;
