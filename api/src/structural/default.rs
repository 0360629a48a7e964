//! Default values of a schema, filled into a value; and nulls that say nothing, taken out.
//!
//! As upstream: a null counts as absent where the schema does not allow one, and a default is
//! looked into for more defaults.

use crate::json;
use serde_json::Value;

/// Fills in what the schema says of what is absent.
pub fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in json::entries(schema, "properties") {
                let Some(default) = json::some(property, "default") else {
                    continue;
                };
                let is_unset = match fields.get(name) {
                    None => true,
                    Some(value) => is_idle_null(value, property),
                };
                if is_unset {
                    fields.insert(name.to_owned(), default.clone());
                }
            }
            let properties = json::get(schema, "properties");
            let additional = json::get(schema, "additionalProperties");
            for (name, value) in fields {
                match properties.get(name) {
                    Some(property) => fill(value, property),
                    None => fill_item(value, additional),
                }
            }
        }
        Value::Array(items) => {
            let of_item = json::get(schema, "items");
            for item in items {
                fill_item(item, of_item);
            }
        }
        _ => {}
    }
}

fn fill_item(value: &mut Value, schema: &Value) {
    if !schema.is_object() {
        return;
    }
    if is_idle_null(value, schema) {
        *value = json::get(schema, "default").clone();
    }
    fill(value, schema);
}

fn is_idle_null(value: &Value, schema: &Value) -> bool {
    value.is_null() && !json::flag(schema, "nullable")
}

/// Takes out nulls of fields that allow none and have no default.
pub fn drop_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let property = json::get(schema, "properties").get(name);
            let additional = json::some(schema, "additionalProperties");
            let of_field = property.or(additional.filter(|one| one.is_object()));
            let Some(of_field) = of_field else {
                return true;
            };
            if is_idle_null(value, of_field) && !json::has(of_field, "default") {
                return false;
            }
            drop_nulls(value, of_field);
            true
        }),
        Value::Array(items) => {
            let of_item = json::get(schema, "items");
            for item in items {
                drop_nulls(item, of_item);
            }
        }
        _ => {}
    }
}
