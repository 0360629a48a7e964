//! JSON with its fields in the order of upstream's structs, for annotations that others compare as
//! text.

use serde_json::Value;

/// One order that fits every struct that is written into an annotation.
const ORDER: &[&str] = &[
    "type",
    "status",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "kind",
    "target",
    "metricName",
    "metricSelector",
    "name",
    "apiVersion",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "lastTransitionTime",
    "reason",
    "message",
    // The behaviour is written with the names of its fields in Go.
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
    "PeriodSeconds",
    "Tolerance",
];

pub fn write(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value);
    out
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                put_text(out, name);
                out.push(':');
                put(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                put(out, item);
            }
            out.push(']');
        }
        Value::String(text) => put_text(out, text),
        other => out.push_str(&other.to_string()),
    }
}

/// As Go does, with what HTML would take for its own escaped.
fn put_text(out: &mut String, text: &str) {
    let quoted = Value::from(text).to_string();
    for letter in quoted.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => out.push(other),
        }
    }
}
