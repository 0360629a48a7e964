//! What expressions see of an object: the value where it is, and one of its own where the schema
//! says more than JSON does, as times and names that are words of the language.

use crate::cel::environment::escaped;
use crate::cel::evaluate::{Key, Text, Val, duration, timestamp};
use crate::json;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::rc::Rc;

/// The value as its schema has it.
pub fn of<'v>(value: &'v Value, schema: &Value, is_resource: bool) -> Val<'v> {
    if is_plain(schema) || is_resource && schema.is_null() {
        return Val::of(value);
    }
    match value {
        Value::Object(fields) => {
            let properties = json::get(schema, "properties");
            let additional = json::get(schema, "additionalProperties");
            let entries = fields
                .iter()
                .map(|(name, value)| match properties.get(name) {
                    Some(property) => {
                        let key = match escaped(name) {
                            Some(own) if own != *name => Text::Own(own.into()),
                            _ => Text::There(name),
                        };
                        (Key::Text(key), of(value, property, false))
                    }
                    None => (Key::Text(Text::There(name)), of(value, additional, false)),
                });
            Val::Map(Rc::new(entries.collect()))
        }
        Value::Array(items) => {
            let of_item = json::get(schema, "items");
            Val::own_list(items.iter().map(|item| of(item, of_item, false)).collect())
        }
        Value::String(text) => of_format(text, json::text(schema, "format")),
        Value::Number(number) if json::text(schema, "type") == "number" => {
            Val::Double(number.as_f64().unwrap_or(f64::NAN))
        }
        other => Val::of(other),
    }
}

fn of_format<'v>(text: &'v str, format: &str) -> Val<'v> {
    let own = Val::Text(Text::There(text));
    let found = match format {
        "date-time" => timestamp(&own).ok(),
        "date" => {
            let midnight = timestamp(&Val::own_text(format!("{text}T00:00:00Z")));
            match midnight {
                Ok(Val::Timestamp(at)) => Some(Val::Timestamp(at)),
                _ => None,
            }
        }
        "duration" => duration(&own).ok(),
        "byte" => {
            let bytes = BASE64_STANDARD.decode(text).ok();
            bytes.map(|bytes| Val::Bytes(bytes.into()))
        }
        _ => None,
    };
    found.unwrap_or(own)
}

/// Whether JSON says all that the schema does.
fn is_plain(schema: &Value) -> bool {
    if !schema.is_object() {
        return true;
    }
    let is_typed = match (json::text(schema, "type"), json::text(schema, "format")) {
        ("number", _) | ("string", "date-time" | "date" | "duration" | "byte") => {
            !json::flag(schema, "x-kubernetes-int-or-string")
        }
        _ => false,
    };
    let is_word = |name: &str| escaped(name).is_some_and(|own| own != name);
    let mut properties = json::entries(schema, "properties");
    !is_typed
        && properties.all(|(name, property)| !is_word(name) && is_plain(property))
        && ["items", "additionalProperties"]
            .iter()
            .all(|field| is_plain(json::get(schema, field)))
}
