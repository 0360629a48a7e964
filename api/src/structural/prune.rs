//! Takes out of a value what its schema does not know, and tells where that was.
//!
//! Metadata of a resource stays as it is: what it may hold, everybody knows.

use super::place::{Place, Step};
use crate::json;
use serde_json::Value;

const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// As upstream: enough to mend a file by, and a hostile body cannot make the answer grow.
const UNKNOWN_MAX: usize = 100;

/// The value without what is not known; `is_resource` for a whole resource.
pub fn pruned(value: &Value, schema: &Value, is_resource: bool) -> Value {
    let mut value = value.clone();
    prune(&mut value, schema, is_resource);
    value
}

/// Prunes in place; gives the paths of what was not known, sorted: `spec.list[0].foo`.
pub fn prune(value: &mut Value, schema: &Value, is_resource: bool) -> Vec<String> {
    let mut unknown = Vec::new();
    let around = Around {
        is_resource,
        keeps: false,
    };
    walk(value, Some(schema), around, Place::ROOT, &mut unknown);
    unknown.sort();
    unknown
}

#[derive(Clone, Copy)]
struct Around {
    is_resource: bool,
    /// A schema around this one lets unknown fields be.
    keeps: bool,
}

impl Around {
    const PLAIN: Self = Self {
        is_resource: false,
        keeps: false,
    };
}

/// Without a schema nothing is known.
fn walk(
    value: &mut Value,
    schema: Option<&Value>,
    around: Around,
    place: Place<'_>,
    unknown: &mut Vec<String>,
) {
    let keeps = around.keeps || flag(schema, "x-kubernetes-preserve-unknown-fields");
    let is_resource = around.is_resource || flag(schema, "x-kubernetes-embedded-resource");
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if is_resource && OF_RESOURCES.contains(&name.as_str()) {
                return true;
            }
            let property = schema.and_then(|schema| schema.get("properties")?.get(name));
            let additional = schema.and_then(|schema| schema.get("additionalProperties"));
            let inside = place.step(Step::Field(name));
            let is_known = match (property, additional) {
                (Some(property), _) => {
                    walk(value, Some(property), Around::PLAIN, inside, unknown);
                    true
                }
                (None, Some(additional)) if additional.is_object() || *additional == true => {
                    let inner = Some(additional).filter(|one| one.is_object());
                    walk(value, inner, Around::PLAIN, inside, unknown);
                    true
                }
                _ => false,
            };
            if !is_known && !keeps && unknown.len() < UNKNOWN_MAX {
                unknown.push(inside.to_string());
            }
            is_known || keeps
        }),
        Value::Array(items) => {
            let of_item = schema.and_then(|schema| json::some(schema, "items"));
            // What is kept as a whole is not looked into.
            if of_item.is_none() && keeps {
                return;
            }
            let around = Around {
                is_resource: false,
                keeps,
            };
            for (index, item) in items.iter_mut().enumerate() {
                let inside = place.step(Step::Index(index));
                walk(item, of_item, around, inside, unknown);
            }
        }
        _ => {}
    }
}

fn flag(schema: Option<&Value>, name: &str) -> bool {
    schema.is_some_and(|schema| json::flag(schema, name))
}
