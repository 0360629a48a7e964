//! Objects as Go has them before anything is set: fields that are not left out when empty.
//!
//! A write that creates is compared to one. A table of facts: `facts/zero.tsv`.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::OnceLock;

static FACTS: &str = include_str!("../../facts/zero.tsv");

/// The empty object of a type; the same small one for most.
pub fn of(type_name: &str) -> &'static Map<String, Value> {
    static OBJECTS: OnceLock<HashMap<&'static str, Map<String, Value>>> = OnceLock::new();
    static PLAIN: OnceLock<Map<String, Value>> = OnceLock::new();
    let objects = OBJECTS.get_or_init(|| FACTS.lines().filter_map(parse).collect());
    objects.get(type_name).unwrap_or_else(|| {
        PLAIN.get_or_init(|| match json!({ "metadata": {} }) {
            Value::Object(map) => map,
            _ => Map::new(),
        })
    })
}

fn parse(line: &'static str) -> Option<(&'static str, Map<String, Value>)> {
    let (name, text) = line.split_once('\t').filter(|_| !line.starts_with('#'))?;
    Some((name, serde_json::from_str(text).ok()?))
}
