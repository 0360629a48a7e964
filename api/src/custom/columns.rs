//! Columns of custom resources: the name, then what the definition asks for, and the age where it
//! asks for nothing.

use super::json_path::JsonPath;
use crate::json;
use crate::object::Object;
use crate::print;
use serde_json::{Value, json};

/// A column as the definition has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub priority: u8,
    pub description: String,
}

/// Where a cell comes from.
#[derive(Clone, Debug)]
pub struct CellPath {
    kind: String,
    path: Option<JsonPath>,
}

/// The columns that stand behind the name.
pub fn headers(version: &Value) -> Vec<Header> {
    let columns = asked(version);
    let headers = columns.iter().map(|column| {
        let text = |name: &str| json::text(column, name).to_owned();
        let description = match json::text(column, "description") {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                json::text(column, "jsonPath")
            ),
            own => own.to_owned(),
        };
        let priority = json::int(column, "priority").unwrap_or(0);
        Header {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            priority: u8::try_from(priority).unwrap_or(u8::MAX),
            description,
        }
    });
    headers.collect()
}

/// The paths of the same columns, in the same order.
pub fn paths(version: &Value) -> Vec<CellPath> {
    let columns = asked(version);
    let paths = columns.iter().map(|column| CellPath {
        kind: json::text(column, "type").to_owned(),
        path: JsonPath::parse(json::text(column, "jsonPath")),
    });
    paths.collect()
}

fn asked(version: &Value) -> Vec<Value> {
    let columns = json::list(version, "additionalPrinterColumns");
    if columns.is_empty() {
        return vec![json!({
            "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": "Time since the server created this object, as its own clock read it.",
        })];
    }
    columns.to_vec()
}

impl CellPath {
    pub fn cell(&self, object: &Object, now: i64) -> Value {
        let found = self.path.as_ref().and_then(|path| path.first_of(object));
        let Some(value) = found.filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value) {
            ("string", Value::String(text)) => text.as_str().into(),
            ("string", other) => other.to_string().into(),
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(whole) => whole.into(),
                None => number
                    .as_f64()
                    .map_or(Value::Null, |real| (real as i64).into()),
            },
            ("number", Value::Number(number)) => value_of(number.as_f64()),
            ("boolean", Value::Bool(flag)) => (*flag).into(),
            ("date", Value::String(time)) => match print::epoch_seconds(time) {
                Some(then) => print::human_duration(now - then).into(),
                None => "<invalid>".into(),
            },
            _ => Value::Null,
        }
    }
}

fn value_of(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::from)
}
