//! JSON into the bytes of a message, by the table. Members that no field has are left out, as Go
//! leaves out what it does not know; a null is absent.

use super::reader::DEPTH_MAX;
use super::table::{Field, Form, Held, MessageId, Table, Wire};
use super::{ProtobufError, special, wire};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

const KEY: u32 = 1;
const VALUE: u32 = 2;

/// Writes the fields of a message; the caller writes its length.
pub fn message(
    table: &Table,
    id: MessageId,
    object: &Map<String, Value>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtobufError> {
    if depth > DEPTH_MAX {
        return Err(ProtobufError::TooDeep);
    }
    for one in table.fields(id) {
        if let (Held::Inline, Wire::Message(inner)) = (one.held, one.wire) {
            wire::delimited(out, one.number, |out| {
                message(table, inner, object, depth + 1, out)
            })?;
            continue;
        }
        match object.get(one.name) {
            None | Some(Value::Null) => {}
            Some(value) => field(table, one, value, depth, out)?,
        }
    }
    Ok(())
}

pub fn field(
    table: &Table,
    field: &Field,
    found: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtobufError> {
    match (field.held, found) {
        (Held::List, Value::Array(items)) => {
            for item in items {
                value(table, field, field.number, item, depth, out)?;
            }
            Ok(())
        }
        (Held::Map, Value::Object(entries)) => {
            for (key, item) in entries {
                wire::delimited(out, field.number, |out| {
                    wire::put_bytes(out, KEY, key.as_bytes());
                    value(table, field, VALUE, item, depth, out)
                })?;
            }
            Ok(())
        }
        (Held::One, found) => value(table, field, field.number, found, depth, out),
        _ => Err(ProtobufError::Value(field.name)),
    }
}

fn value(
    table: &Table,
    field: &Field,
    number: u32,
    found: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtobufError> {
    let refused = || ProtobufError::Value(field.name);
    match field.wire {
        Wire::String => {
            let text = found.as_str().ok_or_else(refused)?;
            wire::put_bytes(out, number, text.as_bytes());
        }
        Wire::Bytes => {
            let text = found.as_str().ok_or_else(refused)?;
            let bytes = BASE64_STANDARD.decode(text).map_err(|_| refused())?;
            wire::put_bytes(out, number, &bytes);
        }
        Wire::Int32 | Wire::Int64 => {
            wire::put_int(out, number, found.as_i64().ok_or_else(refused)?);
        }
        Wire::Bool => {
            let flag = found.as_bool().ok_or_else(refused)?;
            wire::put_varint(out, number, flag.into());
        }
        Wire::Double => wire::put_double(out, number, found.as_f64().ok_or_else(refused)?),
        Wire::Message(id) => {
            // A null within a list or map is the zero value.
            if found.is_null() {
                return wire::delimited(out, number, |_| Ok(()));
            }
            return wire::delimited(out, number, |out| match (table.form(id), found) {
                (Form::Object, Value::Object(object)) => message(table, id, object, depth + 1, out),
                (Form::Object, _) => Err(refused()),
                _ => special::write(table, id, field.name, found, depth + 1, out),
            });
        }
    }
    Ok(())
}
