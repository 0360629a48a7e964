//! Takes out of a value what its schema does not know.
//!
//! Metadata of a resource stays as it is: what it may hold, everybody knows.

use crate::json;
use serde_json::Value;

const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The value without what is not known; `is_resource` for a whole resource.
pub fn pruned(value: &Value, schema: &Value, is_resource: bool) -> Value {
    let mut value = value.clone();
    prune(&mut value, Some(schema), is_resource, false);
    value
}

/// `keeps` where a schema around this one lets unknown fields be. Without a schema nothing is known.
fn prune(value: &mut Value, schema: Option<&Value>, is_resource: bool, keeps: bool) {
    let keeps = keeps || flag(schema, "x-kubernetes-preserve-unknown-fields");
    let is_resource = is_resource || flag(schema, "x-kubernetes-embedded-resource");
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if is_resource && OF_RESOURCES.contains(&name.as_str()) {
                return true;
            }
            let property = schema.and_then(|schema| schema.get("properties")?.get(name));
            let additional = schema.and_then(|schema| schema.get("additionalProperties"));
            let is_known = match (property, additional) {
                (Some(property), _) => {
                    prune(value, Some(property), false, false);
                    true
                }
                (None, Some(additional)) if additional.is_object() || *additional == true => {
                    let inner = Some(additional).filter(|one| one.is_object());
                    prune(value, inner, false, false);
                    true
                }
                _ => false,
            };
            is_known || keeps
        }),
        Value::Array(items) => {
            let of_item = schema.and_then(|schema| json::some(schema, "items"));
            // What is kept as a whole is not looked into.
            if of_item.is_none() && keeps {
                return;
            }
            for item in items {
                prune(item, of_item, false, keeps);
            }
        }
        _ => {}
    }
}

fn flag(schema: Option<&Value>, name: &str) -> bool {
    schema.is_some_and(|schema| json::flag(schema, name))
}
