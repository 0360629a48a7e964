//! `managedFields` as bytes, with the steps of each `fieldsV1` in the order of their sets: port 9
//! before port 10, which the maps of JSON objects have the other way round.
//!
//! Invariant: what is no `fieldsV1` document is written as it is.

use super::element::Element;
use serde_json::{Map, Value};

/// `metadata.managedFields`.
pub fn write_managed_fields(out: &mut Vec<u8>, list: &Value) {
    let Value::Array(entries) = list else {
        return write_any(out, list);
    };
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match entry {
            Value::Object(entry) => write_entry(out, entry),
            other => write_any(out, other),
        }
    }
    out.push(b']');
}

fn write_entry(out: &mut Vec<u8>, entry: &Map<String, Value>) {
    write_map(out, entry.iter(), |out, name, value| {
        if name == "fieldsV1" {
            write_fields(out, value);
        } else {
            write_any(out, value);
        }
    });
}

/// One `fieldsV1` document.
pub fn write_fields(out: &mut Vec<u8>, fields: &Value) {
    let Value::Object(map) = fields else {
        return write_any(out, fields);
    };
    let below = |out: &mut Vec<u8>, _: &str, value: &Value| write_fields(out, value);
    // Field names are in order already; so is everything that is alone.
    let has_order = map.len() < 2 || map.keys().all(|step| step.starts_with("f:") || step == ".");
    if has_order {
        return write_map(out, map.iter(), below);
    }
    let mut steps: Vec<(Option<Element<'_>>, &String, &Value)> = map
        .iter()
        .map(|(step, value)| (Element::parse(step).ok().flatten(), step, value))
        .collect();
    steps.sort_by(|(a, ..), (b, ..)| match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        // What is no step is the dot, which comes first.
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    write_map(
        out,
        steps.into_iter().map(|(_, step, value)| (step, value)),
        below,
    );
}

fn write_map<'a>(
    out: &mut Vec<u8>,
    entries: impl Iterator<Item = (&'a String, &'a Value)>,
    mut write: impl FnMut(&mut Vec<u8>, &str, &Value),
) {
    out.push(b'{');
    for (index, (name, value)) in entries.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, name).expect("a text always serializes into memory");
        out.push(b':');
        write(out, name, value);
    }
    out.push(b'}');
}

fn write_any(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("a JSON value always serializes into memory");
}
