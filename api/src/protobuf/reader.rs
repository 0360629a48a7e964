//! The bytes of a message into JSON, by the table. A field that comes twice is as Go has it: the
//! last one counts, and messages are merged.

use super::table::{Field, Form, Held, MessageId, Table, Wire};
use super::wire::{Fields, Raw};
use super::{MAGIC, ProtobufError, envelope, special, type_of};
use crate::decode::TypeMeta;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Number, Value};

/// The deepest known kind, a pod in a template, has 15 levels; schemas of CRDs nest as they will.
/// Their JSON has up to two levels for one here, and its own reader stops at 128.
pub const DEPTH_MAX: usize = 64;
/// Bounds the memory that a body can ask for: a value takes at least two bytes of body, but some
/// tens of memory. Real objects have four times as many bytes as values.
pub const VALUES_MAX: usize = 1 << 20;

const KEY: u32 = 1;
const VALUE: u32 = 2;

pub struct Reader<'t> {
    pub table: &'t Table,
    values_left: usize,
}

impl<'t> Reader<'t> {
    pub fn new(table: &'t Table) -> Self {
        Self {
            table,
            values_left: VALUES_MAX,
        }
    }

    pub fn document(
        &mut self,
        bytes: &[u8],
    ) -> Result<(TypeMeta, Map<String, Value>), ProtobufError> {
        self.nested_document(bytes, 0)
    }

    pub fn document_as(
        &mut self,
        bytes: &[u8],
        type_name: &str,
    ) -> Result<(TypeMeta, Map<String, Value>), ProtobufError> {
        let (meta, raw) = unseal(bytes)?;
        let id = super::find(self.table, type_name)?;
        let object = self.object(&meta, id, raw, 0)?;
        Ok((meta, object))
    }

    /// A document within a message, `depth` messages deep.
    pub fn nested_document(
        &mut self,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(TypeMeta, Map<String, Value>), ProtobufError> {
        let (meta, raw) = unseal(bytes)?;
        let id = type_of(&meta).and_then(|name| self.table.find(&name));
        let Some(id) = id else {
            return Err(ProtobufError::unknown(&meta));
        };
        let object = self.object(&meta, id, raw, depth)?;
        Ok((meta, object))
    }

    fn object(
        &mut self,
        meta: &TypeMeta,
        id: MessageId,
        raw: &[u8],
        depth: usize,
    ) -> Result<Map<String, Value>, ProtobufError> {
        let mut object = Map::new();
        for (name, text) in [("apiVersion", &meta.api_version), ("kind", &meta.kind)] {
            if !text.is_empty() {
                object.insert(name.to_owned(), text.as_str().into());
            }
        }
        self.message(id, raw, depth, &mut object)?;
        Ok(object)
    }

    /// Adds the fields of a message to `into`.
    pub fn message(
        &mut self,
        id: MessageId,
        bytes: &[u8],
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        if depth > DEPTH_MAX {
            return Err(ProtobufError::TooDeep);
        }
        let mut fields = Fields::new(bytes);
        while let Some((number, raw)) = fields.next()? {
            if let Some(field) = self.table.field(id, number) {
                self.field(field, raw, depth, into)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        match field.held {
            Held::Inline => {
                if let (Wire::Message(id), Raw::Bytes(bytes)) = (field.wire, raw) {
                    return self.message(id, bytes, depth + 1, into);
                }
                Err(ProtobufError::WireType(field.name))
            }
            Held::One => {
                let before = into.remove(field.name);
                let value = self.value(field, raw, depth, before)?;
                into.insert(field.name.to_owned(), value);
                Ok(())
            }
            Held::List => {
                let list = into
                    .entry(field.name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    self.items(field, raw, depth, list)?;
                }
                Ok(())
            }
            Held::Map => {
                let map = into
                    .entry(field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(map) = map {
                    self.entry(field, raw, depth, map)?;
                }
                Ok(())
            }
        }
    }

    /// One item, or the packed numbers that stand for many.
    fn items(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        depth: usize,
        list: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        let packed = match (field.wire, raw) {
            (Wire::Int32 | Wire::Int64 | Wire::Bool | Wire::Double, Raw::Bytes(bytes)) => bytes,
            _ => {
                list.push(self.value(field, raw, depth, None)?);
                return Ok(());
            }
        };
        let mut numbers = Fields::new(packed);
        while !numbers.is_empty() {
            let raw = if field.wire == Wire::Double {
                Raw::Fixed64(numbers.fixed64()?)
            } else {
                Raw::Varint(numbers.varint()?)
            };
            list.push(self.value(field, raw, depth, None)?);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        depth: usize,
        map: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let Raw::Bytes(bytes) = raw else {
            return Err(ProtobufError::WireType(field.name));
        };
        let (mut key, mut value) = (String::new(), None);
        let mut parts = Fields::new(bytes);
        while let Some((number, raw)) = parts.next()? {
            match (number, raw) {
                (KEY, Raw::Bytes(bytes)) => key = text(bytes),
                (VALUE, raw) => value = Some(self.value(field, raw, depth, None)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            // An entry without a value has the zero value.
            None => match field.wire {
                Wire::String | Wire::Bytes | Wire::Message(_) => {
                    self.value(field, Raw::Bytes(b""), depth, None)?
                }
                Wire::Double => self.value(field, Raw::Fixed64(0), depth, None)?,
                _ => self.value(field, Raw::Varint(0), depth, None)?,
            },
        };
        map.insert(key, value);
        Ok(())
    }

    /// One value. `before` is what the field held already, for a message to be merged into.
    fn value(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        depth: usize,
        before: Option<Value>,
    ) -> Result<Value, ProtobufError> {
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or(ProtobufError::TooManyValues)?;
        Ok(match (field.wire, raw) {
            (Wire::String, Raw::Bytes(bytes)) => Value::String(text(bytes)),
            (Wire::Bytes, Raw::Bytes(bytes)) => Value::String(BASE64_STANDARD.encode(bytes)),
            // Go cuts off the upper half.
            #[expect(clippy::cast_possible_truncation, reason = "as Go does")]
            (Wire::Int32, Raw::Varint(number)) => (number as i32).into(),
            (Wire::Int64, Raw::Varint(number)) => number.cast_signed().into(),
            (Wire::Bool, Raw::Varint(number)) => (number != 0).into(),
            (Wire::Double, Raw::Fixed64(bits)) => {
                let number = double(f64::from_bits(bits));
                Value::Number(number.ok_or(ProtobufError::WireType(field.name))?)
            }
            (Wire::Message(id), Raw::Bytes(bytes)) if self.table.form(id) == Form::Object => {
                let mut object = match before {
                    Some(Value::Object(object)) => object,
                    _ => Map::new(),
                };
                self.message(id, bytes, depth + 1, &mut object)?;
                Value::Object(object)
            }
            (Wire::Message(id), Raw::Bytes(bytes)) => special::read(self, id, bytes, depth + 1)?,
            _ => return Err(ProtobufError::WireType(field.name)),
        })
    }
}

/// Go writes whole numbers without a fraction.
fn double(number: f64) -> Option<Number> {
    /// Up to here each whole number has a form of its own.
    const WHOLE_MAX: f64 = (1u64 << 53) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough")]
    if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        return Some((number as i64).into());
    }
    Number::from_f64(number)
}

/// Go puts U+FFFD in place of what is no UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The envelope off a document. What it says of its content's type and encoding, nobody uses.
pub fn unseal(bytes: &[u8]) -> Result<(TypeMeta, &[u8]), ProtobufError> {
    let message = match bytes {
        b"" => return Err(ProtobufError::Nothing),
        MAGIC => return Err(ProtobufError::NothingInside),
        _ => bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?,
    };
    let mut meta = TypeMeta::default();
    let mut object: &[u8] = b"";
    let mut fields = Fields::new(message);
    while let Some((number, raw)) = fields.next()? {
        match (number, raw) {
            (envelope::TYPE_META, Raw::Bytes(bytes)) => {
                let mut parts = Fields::new(bytes);
                while let Some((number, raw)) = parts.next()? {
                    match (number, raw) {
                        (envelope::API_VERSION, Raw::Bytes(bytes)) => {
                            meta.api_version = text(bytes);
                        }
                        (envelope::KIND, Raw::Bytes(bytes)) => meta.kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (envelope::RAW, Raw::Bytes(bytes)) => object = bytes,
            _ => {}
        }
    }
    Ok((meta, object))
}
