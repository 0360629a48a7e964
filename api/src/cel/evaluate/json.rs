//! What expressions give, as JSON, for what is put into an object. Pure.
//!
//! A value that is named several times is there once as long as an expression is evaluated, and is
//! written out for each: so what comes of it is bounded.

use super::value::{Key, Val, whole};
use crate::timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// No object is bigger in a request.
const JSON_BYTES_MAX: usize = 3 * 1024 * 1024;
/// What a value takes beside its text.
const VALUE_BYTES: usize = 8;

/// What may still be written out.
#[derive(Debug)]
pub struct Room(usize);

impl Room {
    pub fn new() -> Self {
        Self(JSON_BYTES_MAX)
    }

    fn take(&mut self, text_bytes: usize) -> Result<(), String> {
        let left = self.0.checked_sub(VALUE_BYTES.saturating_add(text_bytes));
        self.0 = left.ok_or_else(|| {
            format!("the value is too large: it has more than {JSON_BYTES_MAX} bytes")
        })?;
        Ok(())
    }

    fn take_all(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) => self.take(text.len()),
            Value::Array(all) => {
                self.take(0)?;
                all.iter().try_for_each(|one| self.take_all(one))
            }
            Value::Object(all) => {
                self.take(0)?;
                all.iter().try_for_each(|(name, one)| {
                    self.take(name.len())?;
                    self.take_all(one)
                })
            }
            _ => self.take(0),
        }
    }
}

impl Val<'_> {
    /// The error says what cannot be, or that it would be too much.
    pub fn to_json(&self, room: &mut Room) -> Result<Value, String> {
        let text = |text: String, room: &mut Room| {
            room.take(text.len())?;
            Ok(text.into())
        };
        let plain = match self {
            Val::Null => Value::Null,
            Val::Bool(is_true) => (*is_true).into(),
            Val::Int(number) => (*number).into(),
            Val::Uint(number) => (*number).into(),
            Val::Double(number) => match whole(*number) {
                Some(number) => number.into(),
                None => (*number).into(),
            },
            Val::Text(own) => {
                room.take(own.len())?;
                return Ok((**own).into());
            }
            Val::Bytes(bytes) => {
                // In base64.
                room.take(bytes.len().div_ceil(3).saturating_mul(4))?;
                return Ok(STANDARD.encode(bytes).into());
            }
            Val::Json(value) => {
                room.take_all(value)?;
                return Ok((*value).clone());
            }
            Val::Duration(nanos) => return text(super::times::duration_text(*nanos), room),
            Val::Timestamp(at) => return text(timestamp::format_time(*at), room),
            Val::Quantity(quantity) => return text(quantity.to_string(), room),
            Val::Ip(address) => return text(address.to_string(), room),
            Val::Cidr(range) => return text(range.to_string(), room),
            other => return other.written_out(room),
        };
        room.take(0)?;
        Ok(plain)
    }

    /// Lists and what has fields.
    fn written_out(&self, room: &mut Room) -> Result<Value, String> {
        room.take(0)?;
        if let Some(list) = self.list() {
            let all = list.iter().map(|one| one.to_json(room));
            return all.collect();
        }
        let table = self.table();
        let table = table.ok_or_else(|| format!("unsupported type {}", self.type_name()))?;
        let entries = table.entries().into_iter().map(|(key, one)| match key {
            Key::Text(name) => {
                room.take(name.len())?;
                Ok((name.to_string(), one.to_json(room)?))
            }
            key => Err(format!("unsupported key {:?}", key.value().type_name())),
        });
        Ok(Value::Object(entries.collect::<Result<_, String>>()?))
    }
}
