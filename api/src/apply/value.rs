//! Values as upstream's `value` package compares, shows and writes them.

use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// A total order: numbers by size, then strings, booleans, lists, maps, null.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .zip(b)
            .map(|((a_key, a), (b_key, b))| a_key.cmp(b_key).then_with(|| compare(a, b)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

pub fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let [a, b] = [a, b].map(|number| number.as_f64().unwrap_or(0.0));
            a.total_cmp(&b)
        }
    }
}

/// Equality in which 1 is 1.0.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((a_key, a), (b_key, b))| a_key == b_key && equal(a, b))
        }
        (a, b) => a == b,
    }
}

/// As a path shows a key's value: strings quoted as Go does.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => crate::decode::quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| format!("{key}={}", shown(value)))
            .collect(),
        other => other.to_string(),
    }
}

/// JSON in which `<`, `>` and `&` are escaped, as Go writes it.
pub fn write(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        Value::Number(number) => match whole(number) {
            Some(whole) => write!(out, "{whole}").expect("a String takes all"),
            None => write!(out, "{number}").expect("a String takes all"),
        },
        other => write!(out, "{other}").expect("a String takes all"),
    }
}

/// Go writes 80.0 as 80.
fn whole(number: &Number) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = float.fract() == 0.0 && float.abs() <= EXACT_MAX;
    #[allow(clippy::cast_possible_truncation)] // Checked just above.
    is_whole.then_some(float as i64)
}

pub fn write_string(out: &mut String, text: &str) {
    let start = out.len();
    let quoted = serde_json::to_string(text).expect("a string always serializes");
    out.push_str(&quoted);
    let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    if out[start..].contains(special) {
        let escaped: String = out[start..]
            .chars()
            .map(|c| {
                if special(c) {
                    format!("\\u{:04x}", u32::from(c))
                } else {
                    c.to_string()
                }
            })
            .collect();
        out.truncate(start);
        out.push_str(&escaped);
    }
}
