//! Decodes bytes into an object of a known type, as Go's strict JSON decoder does.
//!
//! One pass over the bytes: fields that the type does not have are never kept, nulls are absent,
//! ill-typed values are errors in Go's words, and quantities and times take their canonical form.
//! Pure. Bounded: 100 reported fields, and nesting that every reader takes ([`NESTING_MAX`]).

mod go;
mod meta;
mod place;
mod repair;
mod scalar;
pub mod strict; // Documents of no known type, whose keys may not be there twice.
mod syntax;
mod walk;

use crate::json;
use crate::object::Object;
use crate::schema::{Schema, schema};
pub(crate) use go::time_quoted;
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};
use walk::{Seed, Walk};

/// `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Strict,
    #[default]
    Warn,
    Ignore,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub object: Object,
    /// `unknown field "spec.foo"`, one a `Warning` header. Empty unless the mode is `Warn`.
    pub warnings: Vec<String>,
}

/// How deep what a client writes may nest. Many who read it back give up at 128 levels, serde_json
/// among them, and find it a few levels deeper: in a list, an event or a review.
pub const NESTING_MAX: usize = 110;
/// The same with the fields' managers, who repeat the object's nesting some levels deeper.
const MANAGED_NESTING_MAX: usize = NESTING_MAX + 8;

/// Refuses a document that could be stored and then not be read.
pub fn check_nesting(root: &Map<String, Value>) -> Result<(), DecodeError> {
    let managed = root
        .get("metadata")
        .and_then(|metadata| metadata.get("managedFields"));
    let managed_levels = managed.map_or(0, |managed| 2 + json::nesting(managed, None));
    let levels = 1 + root
        .values()
        .map(|value| json::nesting(value, managed))
        .max()
        .unwrap_or(0);
    if levels > NESTING_MAX || managed_levels > MANAGED_NESTING_MAX {
        return Err(DecodeError::TooDeep);
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or no JSON object. The text is Go's.
    #[error("{0}")]
    Syntax(String),
    /// A value that its field cannot take. The text is Go's.
    #[error("{0}")]
    Type(String),
    /// Unknown and duplicate fields, in strict mode alone.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
    #[error("no schema for {0}")]
    UnknownType(String),
    #[error("it nests deeper than {NESTING_MAX} levels")]
    TooDeep,
}

impl DecodeError {
    /// The message of the 400 that upstream answers. `kind` is the kind that the endpoint takes,
    /// `version` its version.
    pub fn message(&self, kind: &str, version: &str, body: &[u8]) -> String {
        match self {
            Self::Syntax(_) => {
                let why = format!("couldn't get version/kind; json parse error: {self}");
                unrecognized(kind, &why, body)
            }
            _ => format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {self}"),
        }
    }
}

/// The message of the 400 for a body that is no document at all.
pub fn unrecognized(kind: &str, why: &str, body: &[u8]) -> String {
    format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        go::summary(body)
    )
}

/// `apiVersion` and `kind` of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

/// Decodes a body of the built-in type `type_name` (`io.k8s.api.apps.v1.Deployment`). Kinds and
/// versions are not compared: the caller knows which ones it takes.
pub fn decode(
    bytes: &[u8],
    type_name: &str,
    mode: FieldValidation,
) -> Result<Decoded, DecodeError> {
    decode_in(schema(), bytes, type_name, mode)
}

/// [`decode`] by another schema than the built-in one.
pub fn decode_in(
    schema: &Schema,
    bytes: &[u8],
    type_name: &str,
    mode: FieldValidation,
) -> Result<Decoded, DecodeError> {
    if std::str::from_utf8(bytes).is_err() {
        // Go puts U+FFFD in place of what is no UTF-8; only then is the body copied.
        let text = String::from_utf8_lossy(bytes);
        return decode_in(schema, text.as_bytes(), type_name, mode);
    }
    let mut walk = Walk::new(schema, mode);
    let seed = Seed::root(&mut walk, type_name)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = match seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
    {
        Ok(value) => value,
        Err(error) => {
            return match go_takes(bytes) {
                Some(bytes) => decode_in(schema, &bytes, type_name, mode),
                None => Err(DecodeError::Syntax(go::syntax(&error, bytes))),
            };
        }
    };
    let warnings = walk.finish()?;
    let object = value.and_then(Object::from_value).ok_or_else(no_object)?;
    Ok(Decoded { object, warnings })
}

/// Brings a parsed document into the form that [`decode`] gives, in place; returns the warnings.
/// After an error `value` is null.
pub fn conform(
    value: &mut Value,
    type_name: &str,
    mode: FieldValidation,
) -> Result<Vec<String>, DecodeError> {
    conformed(Walk::new(schema(), mode), value, type_name)
}

/// [`conform`] by another schema than the built-in one.
pub fn conform_in(
    schema: &Schema,
    value: &mut Value,
    type_name: &str,
    mode: FieldValidation,
) -> Result<Vec<String>, DecodeError> {
    conformed(Walk::new(schema, mode), value, type_name)
}

/// [`conform`] of what a strategic merge patch made: upstream converts that field by field, and
/// words what does not fit in a way of its own.
pub fn convert(
    value: &mut Value,
    type_name: &str,
    mode: FieldValidation,
) -> Result<Vec<String>, DecodeError> {
    let mut walk = Walk::new(schema(), mode);
    walk.converts = true;
    conformed(walk, value, type_name)
}

fn conformed(
    mut walk: Walk<'_>,
    value: &mut Value,
    type_name: &str,
) -> Result<Vec<String>, DecodeError> {
    let seed = Seed::root(&mut walk, type_name)?;
    let taken = value.take();
    let conformed = seed
        .deserialize(taken)
        .map_err(|error| DecodeError::Syntax(error.to_string()))?;
    let warnings = walk.finish()?;
    match conformed {
        Some(Value::Object(map)) => *value = Value::Object(map),
        _ => return Err(no_object()),
    }
    Ok(warnings)
}

/// A parse error in Go's words, for documents that are not decoded here.
pub fn syntax_text(error: &serde_json::Error, bytes: &[u8]) -> String {
    go::syntax(error, bytes)
}

/// A text in quotes, as Go's `%q` has it.
pub fn quoted(text: &str) -> String {
    go::quoted(text)
}

/// What is left of a null.
fn no_object() -> DecodeError {
    let text = format!(
        "json: cannot unmarshal null into Go value of type {}",
        go::TYPE_META
    );
    DecodeError::Syntax(text)
}

/// A document that our parser refuses and Go takes, in a form that ours takes.
fn go_takes(bytes: &[u8]) -> Option<Vec<u8>> {
    match syntax::error(bytes) {
        Some(_) => None,
        None => repair::repaired(bytes),
    }
}

/// `apiVersion` and `kind` of a body, without keeping the rest of it.
pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, DecodeError> {
    if std::str::from_utf8(bytes).is_err() {
        return type_meta(String::from_utf8_lossy(bytes).as_bytes());
    }
    let found: meta::Found = match serde_json::from_slice(bytes) {
        Ok(found) => found,
        Err(error) => {
            return match go_takes(bytes) {
                Some(bytes) => type_meta(&bytes),
                None => Err(DecodeError::Syntax(go::syntax(&error, bytes))),
            };
        }
    };
    match found.error {
        Some(error) => Err(DecodeError::Syntax(error)),
        None => Ok(found.meta),
    }
}

#[cfg(test)]
mod tests;
