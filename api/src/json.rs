//! Reading and defaulting the fields of a JSON value by name, as Go reads them.
//!
//! An absent, null or ill-typed field reads as Go's zero value. Writing makes only what it needs.

use serde_json::{Map, Value};

/// A shared null, for a reference to what is not there.
pub static NULL: Value = Value::Null;

/// The field, or null.
pub fn get<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&NULL)
}

/// The value under a path of field names, or null.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, name| get(value, name))
}

/// The field, `None` when it is absent or null.
pub fn some<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|field| !field.is_null())
}

pub fn has(value: &Value, name: &str) -> bool {
    some(value, name).is_some()
}

/// How many arrays and objects are in each other, without those in `apart`.
pub fn nesting(value: &Value, apart: Option<&Value>) -> usize {
    if apart.is_some_and(|apart| std::ptr::eq(apart, value)) {
        return 0;
    }
    let deepest = match value {
        Value::Array(items) => items.iter().map(|item| nesting(item, apart)).max(),
        Value::Object(map) => map.values().map(|value| nesting(value, apart)).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

pub fn int(value: &Value, name: &str) -> Option<i64> {
    value.get(name).and_then(Value::as_i64)
}

pub fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The entries of a map field.
pub fn entries<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

/// The items of a list field, to change them.
pub fn list_mut<'a>(value: &'a mut Value, name: &str) -> &'a mut [Value] {
    value
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// The field as a JSON object, to change it; `None` when it is not one.
pub fn object_mut<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    value.get_mut(name).filter(|field| field.is_object())
}

/// Sets a pointer-like field that is absent or null. Does nothing to what is not an object.
pub fn default(value: &mut Value, name: &str, default: impl Into<Value>) {
    if let Value::Object(map) = value {
        default_in(map, name, default);
    }
}

/// Sets a string field that is absent, null or empty.
pub fn default_text(value: &mut Value, name: &str, default: &str) {
    let unset = match value.get(name) {
        None | Some(Value::Null) => true,
        Some(field) => field.as_str() == Some(""),
    };
    if unset && let Value::Object(map) = value {
        map.insert(name.to_owned(), default.into());
    }
}

/// Sets a number field that is absent, null or zero.
pub fn default_int(value: &mut Value, name: &str, default: i64) {
    let unset = match value.get(name) {
        None | Some(Value::Null) => true,
        Some(field) => field.as_i64() == Some(0),
    };
    if unset && let Value::Object(map) = value {
        map.insert(name.to_owned(), default.into());
    }
}

/// Sets a field of a map that is absent or null.
pub fn default_in(map: &mut Map<String, Value>, name: &str, default: impl Into<Value>) {
    if matches!(map.get(name), None | Some(Value::Null)) {
        map.insert(name.to_owned(), default.into());
    }
}

/// The `spec` of an object, made where there is none, to fill in defaults; `None` for what is no
/// JSON object.
pub fn spec_mut(root: &mut Map<String, Value>) -> Option<&mut Value> {
    default_in(root, "spec", Map::new());
    root.get_mut("spec").filter(|spec| spec.is_object())
}

/// True for what Go's `omitempty` leaves out: null, "", 0, false, empty lists and maps.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Equality as Go's semantic deep-equal has it, of objects that were decoded: absent, null and an
/// empty list are one. What else is empty is there only where it says something: `false` of a field
/// whose default is true, `{}` of a selector that takes all.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter()
                .all(|(key, value)| same(value, b.get(key).unwrap_or(&NULL)))
                && b.iter()
                    .all(|(key, value)| a.contains_key(key) || is_nothing(value))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (a, b) => a == b || is_nothing(a) && is_nothing(b),
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}
