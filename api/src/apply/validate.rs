//! Whether an applied configuration is of its type, in upstream's words.

use super::element::Element;
use super::types::{Atom, ListAtom, MapAtom, Place, Relation, Scalar, Types};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What is wrong, with the path at which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    path: String,
    message: String,
}

impl Wrong {
    fn here(message: impl Into<String>) -> Vec<Self> {
        vec![Self {
            path: String::new(),
            message: message.into(),
        }]
    }
}

/// All that is wrong as one message: one line, or a list.
pub fn message(wrongs: &[Wrong]) -> String {
    let line = |wrong: &Wrong| match wrong.path.as_str() {
        "" => wrong.message.clone(),
        path => format!("{path}: {}", wrong.message),
    };
    match wrongs {
        [one] => line(one),
        many => {
            let lines: Vec<String> = many
                .iter()
                .map(|wrong| format!("\n  {}", line(wrong)))
                .collect();
            format!("errors:{}", lines.concat())
        }
    }
}

impl<'s> Types<'s> {
    /// All that is wrong with a configuration. Its lists may not have an item twice.
    pub fn validate(&self, root: Place<'s>, object: &Map<String, Value>) -> Vec<Wrong> {
        match self.atom(root, None) {
            Atom::Map(map) => self.validate_map(&map, object),
            _ => Vec::new(),
        }
    }

    fn validate_value(&self, place: Place<'s>, value: &Value) -> Vec<Wrong> {
        if value.is_null() {
            return Vec::new();
        }
        match self.atom(place, Some(value)) {
            Atom::Scalar(scalar) => validate_scalar(scalar, value),
            Atom::List(list) => match value {
                Value::Array(items) => self.validate_list(&list, items),
                other => Wrong::here(format!("expected list, got &{{{}}}", go_value(other))),
            },
            Atom::Map(map) => match value {
                Value::Object(object) => self.validate_map(&map, object),
                other => Wrong::here(format!("expected map, got &{{{}}}", go_value(other))),
            },
        }
    }

    fn validate_map(&self, map: &MapAtom<'s>, object: &Map<String, Value>) -> Vec<Wrong> {
        let mut wrongs = Vec::new();
        for (key, value) in object {
            let Some(place) = self.child(map, key) else {
                wrongs.push(Wrong {
                    path: format!(".{key}"),
                    message: "field not declared in schema".to_owned(),
                });
                break;
            };
            let step = Element::Field(Cow::Borrowed(key));
            wrongs.extend(below(&step, self.validate_value(place, value)));
        }
        wrongs
    }

    fn validate_list(&self, list: &ListAtom<'s>, items: &[Value]) -> Vec<Wrong> {
        let (mut wrongs, mut seen) = (Vec::new(), BTreeSet::new());
        for (index, item) in items.iter().enumerate() {
            let step = if list.relation == Relation::Atomic {
                Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match self.step(list, item) {
                    Ok(step) => step,
                    Err(why) => {
                        wrongs.extend(Wrong::here(format!("element {index}: {why}")));
                        return wrongs;
                    }
                }
            };
            if list.relation != Relation::Atomic && !seen.insert(step.clone()) {
                wrongs.extend(Wrong::here(format!("duplicate entries for key {step}")));
            }
            wrongs.extend(below(&step, self.validate_value(list.item, item)));
        }
        wrongs
    }
}

fn below(step: &Element<'_>, mut wrongs: Vec<Wrong>) -> Vec<Wrong> {
    if !wrongs.is_empty() {
        let prefix = step.to_string();
        for wrong in &mut wrongs {
            wrong.path.insert_str(0, &prefix);
        }
    }
    wrongs
}

fn validate_scalar(scalar: Scalar, value: &Value) -> Vec<Wrong> {
    let fits = match scalar {
        Scalar::Text => value.is_string(),
        Scalar::Number => value.is_number(),
        Scalar::Bool => value.is_boolean(),
        Scalar::Open => !value.is_array() && !value.is_object(),
    };
    if fits {
        return Vec::new();
    }
    Wrong::here(match scalar {
        Scalar::Text => format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_syntax(value)
        ),
        Scalar::Number => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        Scalar::Bool => format!("expected boolean, got &{{{}}}", go_value(value)),
        Scalar::Open => format!("expected any scalar, got &{{{}}}", go_value(value)),
    })
}

/// Go's `%T`.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%v`.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_value(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
