//! Lists whose items are told apart: those of a set by their values, those of a map by their keys.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What is there twice. The path is that of the value, empty for a whole object.
pub fn check(value: &Value, schema: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    walk(&mut errors, value, schema, path);
    errors
}

fn walk(errors: &mut ErrorList, value: &Value, schema: &Value, path: &Path) {
    match value {
        Value::Object(fields) => {
            let properties = json::get(schema, "properties");
            let additional = json::get(schema, "additionalProperties");
            for (name, value) in fields {
                if additional.is_object() {
                    walk(errors, value, additional, &path.key(name));
                }
                if let Some(property) = properties.get(name) {
                    walk(errors, value, property, &path.child(name));
                }
            }
        }
        Value::Array(items) => {
            match json::text(schema, "x-kubernetes-list-type") {
                "set" => {
                    for index in twice(items.iter().map(identity)) {
                        let path = path.index(index);
                        errors.push(FieldError::duplicate(&path, items[index].clone()));
                    }
                }
                "map" => map(errors, items, schema, path),
                _ => {}
            }
            let of_item = json::get(schema, "items");
            for (index, item) in items.iter().enumerate() {
                walk(errors, item, of_item, &path.index(index));
            }
        }
        _ => {}
    }
}

fn map(errors: &mut ErrorList, items: &[Value], schema: &Value, path: &Path) {
    let is_wrong = |item: &Value| !item.is_null() && !item.is_object();
    if let Some(index) = items.iter().position(is_wrong) {
        let detail = "must be an object for an array of list-type map";
        let path = path.index(index);
        errors.push(FieldError::invalid(&path, items[index].clone(), detail));
        return;
    }
    let names: Vec<&str> = json::list(schema, "x-kubernetes-list-map-keys")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let there = names.iter().filter_map(|name| {
                let value = item.get(name)?;
                Some(((*name).to_owned(), value.clone()))
            });
            Value::Object(there.collect::<Map<_, _>>())
        })
        .collect();
    for index in twice(keys.iter().map(identity)) {
        errors.push(FieldError::duplicate(
            &path.index(index),
            keys[index].clone(),
        ));
    }
}

/// The same text for the same value.
fn identity(value: &Value) -> String {
    value.to_string()
}

/// Where a value comes the second time; what comes more often is told once.
fn twice(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, text) in texts.enumerate() {
        let times = seen.entry(text).or_insert(0);
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}
