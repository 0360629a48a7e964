//! Messages that have a JSON form of their own: quantities, times, durations, int-or-strings, raw
//! JSON, and lists that are a message in protobuf because it has no list of lists.

use super::reader::{Reader, text};
use super::table::{Field, Form, Held, MessageId, Table, Wire};
use super::wire::{self, Fields, Raw};
use super::{MAGIC, ProtobufError, reader, writer};
use crate::decode::{FieldValidation, conform};
use crate::go_duration;
use crate::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The only field of a Quantity, of a Duration and of raw JSON.
const ONLY: u32 = 1;

mod time {
    pub const SECONDS: u32 = 1;
    pub const NANOSECONDS: u32 = 2;
}

mod int_or_string {
    pub const TYPE: u32 = 1;
    pub const INT: u32 = 2;
    pub const STRING: u32 = 3;
    pub const TYPE_INT: i64 = 0;
    pub const TYPE_STRING: i64 = 1;
}

const NANOSECONDS_A_MICROSECOND: i32 = 1000;

pub fn read(
    reader: &mut Reader<'_>,
    id: MessageId,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, ProtobufError> {
    let form = reader.table.form(id);
    Ok(match form {
        Form::Quantity => match only_bytes(bytes, "quantity")? {
            Some(found) => text(found).into(),
            None => "0".into(),
        },
        Form::IntOrString => read_int_or_string(bytes)?,
        // Go writes the zero time as nothing.
        Form::Time | Form::MicroTime if bytes.is_empty() => Value::Null,
        Form::Time | Form::MicroTime => read_time(bytes, form == Form::MicroTime)?,
        Form::Duration => read_duration(bytes)?,
        Form::Raw => match only_bytes(bytes, "raw")? {
            Some(raw) if raw.starts_with(MAGIC) => {
                let (_, object) = nested(reader, raw, depth)?;
                Value::Object(object)
            }
            Some(raw) if !raw.is_empty() => serde_json::from_slice(raw)
                .map_err(|error| ProtobufError::Text(crate::decode::syntax_text(&error, raw)))?,
            _ => Value::Null,
        },
        Form::List | Form::Either | Form::Object => {
            let mut object = Map::new();
            reader.message(id, bytes, depth, &mut object)?;
            if form == Form::List {
                let list = object.into_iter().next();
                list.map_or_else(|| Value::Array(Vec::new()), |(_, list)| list)
            } else {
                let mut value = either(object);
                drop_zeros(&mut value)?;
                value
            }
        }
    })
}

fn nested(
    reader: &mut Reader<'_>,
    raw: &[u8],
    depth: usize,
) -> Result<(crate::decode::TypeMeta, Map<String, Value>), ProtobufError> {
    if depth > reader::DEPTH_MAX {
        return Err(ProtobufError::TooDeep);
    }
    reader.nested_document(raw, depth + 1)
}

/// The list if there is one, else the schema, else whether all is allowed.
fn either(mut object: Map<String, Value>) -> Value {
    for name in ["jSONSchemas", "property", "schema", "allows"] {
        if let Some(value) = object.remove(name) {
            return value;
        }
    }
    Value::Null
}

/// Takes out what Go writes of fields that nobody set. Elsewhere [`crate::decode`] does so, but it
/// does not look into these: in JSON they may be of two types.
fn drop_zeros(value: &mut Value) -> Result<(), ProtobufError> {
    const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(drop_zeros),
        Value::Object(_) => conform(value, SCHEMA, FieldValidation::Ignore)
            .map(drop)
            .map_err(|error| ProtobufError::Text(error.to_string())),
        _ => Ok(()),
    }
}

fn only_bytes<'b>(bytes: &'b [u8], what: &'static str) -> Result<Option<&'b [u8]>, ProtobufError> {
    let mut found = None;
    let mut fields = Fields::new(bytes);
    while let Some((number, raw)) = fields.next()? {
        match (number, raw) {
            (ONLY, Raw::Bytes(bytes)) => found = Some(bytes),
            (ONLY, _) => return Err(ProtobufError::WireType(what)),
            _ => {}
        }
    }
    Ok(found)
}

fn read_int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut kind, mut number, mut string) = (int_or_string::TYPE_INT, 0i32, &b""[..]);
    let mut fields = Fields::new(bytes);
    while let Some((field, raw)) = fields.next()? {
        match (field, raw) {
            (int_or_string::TYPE, Raw::Varint(found)) => kind = found.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "as Go does")]
            (int_or_string::INT, Raw::Varint(found)) => number = found as i32,
            (int_or_string::STRING, Raw::Bytes(found)) => string = found,
            _ => {}
        }
    }
    match kind {
        int_or_string::TYPE_INT => Ok(number.into()),
        int_or_string::TYPE_STRING => Ok(text(string).into()),
        _ => Err(ProtobufError::Text(
            "impossible IntOrString.Type".to_owned(),
        )),
    }
}

fn read_time(bytes: &[u8], micro: bool) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (0i64, 0i32);
    let mut fields = Fields::new(bytes);
    while let Some((field, raw)) = fields.next()? {
        match (field, raw) {
            (time::SECONDS, Raw::Varint(found)) => seconds = found.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "as Go does")]
            (time::NANOSECONDS, Raw::Varint(found)) => nanoseconds = found as i32,
            _ => {}
        }
    }
    // A Time has whole seconds, a MicroTime whole microseconds.
    let kept = nanoseconds - nanoseconds % NANOSECONDS_A_MICROSECOND;
    let at = Timestamp::new(seconds, if micro { kept } else { 0 })
        .map_err(|_| ProtobufError::Text(format!("time out of range: {seconds} seconds")))?;
    Ok(if micro {
        timestamp::format_micro_time(at).into()
    } else {
        timestamp::format_time(at).into()
    })
}

fn read_duration(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut nanoseconds = 0i64;
    let mut fields = Fields::new(bytes);
    while let Some((field, raw)) = fields.next()? {
        if let (ONLY, Raw::Varint(found)) = (field, raw) {
            nanoseconds = found.cast_signed();
        }
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let text = go_duration::format(nanoseconds.unsigned_abs());
    Ok(format!("{sign}{text}").into())
}

/// Writes the fields of such a message; the caller writes its length.
pub fn write(
    table: &Table,
    id: MessageId,
    name: &'static str,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtobufError> {
    let refused = || ProtobufError::Value(name);
    match table.form(id) {
        Form::Quantity => match value {
            Value::String(text) => wire::put_bytes(out, ONLY, text.as_bytes()),
            Value::Number(number) => wire::put_bytes(out, ONLY, number.to_string().as_bytes()),
            _ => return Err(refused()),
        },
        Form::IntOrString => write_int_or_string(value, out).ok_or_else(refused)?,
        Form::Time | Form::MicroTime => {
            let at = value.as_str().and_then(timestamp::parse);
            let at = at.ok_or_else(refused)?;
            wire::put_int(out, time::SECONDS, at.as_second());
            wire::put_int(out, time::NANOSECONDS, at.subsec_nanosecond().into());
        }
        Form::Duration => {
            let text = value.as_str().ok_or_else(refused)?;
            let nanoseconds = go_duration::parse(text).map_err(|_| refused())?;
            wire::put_int(out, ONLY, nanoseconds);
        }
        Form::Raw if name == "fieldsV1" => {
            let mut text = Vec::new();
            crate::apply::order::write_fields(&mut text, value);
            wire::put_bytes(out, ONLY, &text);
        }
        Form::Raw => wire::put_bytes(out, ONLY, value.to_string().as_bytes()),
        Form::List => {
            let field = table.fields(id).first().ok_or_else(refused)?;
            writer::field(table, field, value, depth, out)?;
        }
        Form::Either => write_either(table, id, name, value, depth, out)?,
        Form::Object => {
            let object = value.as_object().ok_or_else(refused)?;
            writer::message(table, id, object, depth, out)?;
        }
    }
    Ok(())
}

/// Go writes all three fields, whichever counts.
fn write_int_or_string(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let (kind, number, text) = match value {
        Value::Number(number) => {
            let number = i32::try_from(number.as_i64()?).ok()?;
            (int_or_string::TYPE_INT, number, "")
        }
        Value::String(text) => (int_or_string::TYPE_STRING, 0, text.as_str()),
        _ => return None,
    };
    wire::put_int(out, int_or_string::TYPE, kind);
    wire::put_int(out, int_or_string::INT, number.into());
    wire::put_bytes(out, int_or_string::STRING, text.as_bytes());
    Some(())
}

fn write_either(
    table: &Table,
    id: MessageId,
    name: &'static str,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtobufError> {
    let fits = |field: &&Field| match value {
        Value::Bool(_) => field.wire == Wire::Bool,
        Value::Array(_) => field.held == Held::List,
        _ => field.held == Held::One && field.wire != Wire::Bool,
    };
    // Where a schema and "all is allowed" go together, the schema says that too.
    let allows = table.fields(id).iter().find(|one| one.wire == Wire::Bool);
    if let (Some(allows), Value::Object(_)) = (allows, value) {
        writer::field(table, allows, &Value::Bool(true), depth, out)?;
    }
    let found = table.fields(id).iter().find(fits);
    let field = found.ok_or(ProtobufError::Value(name))?;
    writer::field(table, field, value, depth, out)
}
