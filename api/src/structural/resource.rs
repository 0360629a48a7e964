//! Resources within a value: `apiVersion`, `kind` and `metadata` are as those of any resource.

use crate::field::{ErrorList, FieldError, Path};
use crate::{json, meta_validate, names};
use serde_json::Value;

/// What is wrong with the resources in a value; `is_resource` where it is one itself.
pub fn check(value: &Value, schema: &Value, is_resource: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match value {
        Value::Object(fields) => {
            if is_resource || json::flag(schema, "x-kubernetes-embedded-resource") {
                resource(&mut errors, value, path);
            }
            for (name, value) in fields {
                let property = json::some(json::get(schema, "properties"), name);
                let additional = json::get(schema, "additionalProperties");
                match property {
                    Some(property) => {
                        errors.extend(check(value, property, false, &path.child(name)));
                    }
                    None => errors.extend(check(value, additional, false, &path.key(name))),
                }
            }
        }
        Value::Array(items) => {
            let of_item = json::get(schema, "items");
            for (index, item) in items.iter().enumerate() {
                errors.extend(check(item, of_item, false, &path.index(index)));
            }
        }
        _ => {}
    }
    errors
}

fn resource(errors: &mut ErrorList, value: &Value, path: &Path) {
    for field in ["apiVersion", "kind"] {
        let path = path.child(field);
        let text = match value.get(field) {
            None => {
                errors.push(FieldError::required(&path, ""));
                continue;
            }
            Some(Value::String(text)) => text,
            Some(other) => {
                errors.push(FieldError::invalid(
                    &path,
                    other.clone(),
                    "must be a string",
                ));
                continue;
            }
        };
        let details = match field {
            "apiVersion" => Vec::new(),
            _ => names::dns_1035_label(&text.to_lowercase()),
        };
        let detail = if text.is_empty() {
            "must not be empty".to_owned()
        } else if field == "apiVersion" && text.matches('/').count() > 1 {
            format!("unexpected GroupVersion string: {text}")
        } else if !details.is_empty() {
            let details = details.join(",");
            format!("may have mixed case, but should otherwise match: {details}")
        } else {
            continue;
        };
        errors.push(FieldError::invalid(&path, text.as_str(), detail));
    }
    let path = path.child("metadata");
    match value.get("metadata") {
        None | Some(Value::Null) => {}
        Some(metadata @ Value::Object(_)) => {
            let name = json::text(metadata, "name");
            let details = names::path_segment(name);
            meta_validate::invalid_each(errors, &path.child("name"), name, details);
            let (labels, annotations) = (path.child("labels"), path.child("annotations"));
            errors.extend(meta_validate::labels(
                json::get(metadata, "labels"),
                &labels,
            ));
            let of = json::get(metadata, "annotations");
            errors.extend(meta_validate::annotations(of, &annotations));
        }
        Some(other) => {
            let kind = super::type_of(other).0;
            let detail =
                format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta");
            errors.push(FieldError::invalid(&path, other.clone(), detail));
        }
    }
}
