//! What becomes of a document on its way in, and of a stored one on its way out: metadata of its
//! type, nothing that the schema does not know, no idle nulls, and defaults.

use super::family::{ENVELOPE, METADATA, envelope};
use super::version::Version;
use crate::decode::{self, DecodeError, FieldValidation, quoted};
use crate::json;
use crate::object::Object;
use crate::structural::{self, Place, Step};
use serde_json::Value;

impl Version {
    /// A document as an object of this version, bar its defaults; with what it says twice
    /// (`twice`) and what is not known of it: an error or warnings, as `mode` has it.
    pub fn admit(
        &self,
        mut value: Value,
        twice: Vec<String>,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        let gathers = match mode {
            FieldValidation::Ignore => FieldValidation::Ignore,
            // Gathered here, and told with the rest.
            FieldValidation::Strict | FieldValidation::Warn => FieldValidation::Warn,
        };
        let of_metadata = decode::conform_in(envelope(), &mut value, ENVELOPE, gathers)?;
        let mut unknown = twice;
        unknown.extend(of_metadata);
        if !self.keeps_unknown {
            let pruned = structural::prune(&mut value, &self.schema, true);
            unknown.extend(pruned.iter().map(|path| told(path)));
            structural::drop_nulls(&mut value, &self.schema);
        }
        let mut of_parts = Vec::new();
        each_resource(
            &mut value,
            &self.schema,
            Place::ROOT,
            &mut |resource, place| {
                let found = coerce(resource, place, gathers)?;
                of_parts.extend(found);
                Ok(())
            },
        )?;
        unknown.extend(of_parts);
        let object = Object::from_value(value).unwrap_or_else(|| Object::new("", ""));
        match mode {
            FieldValidation::Ignore => Ok((object, Vec::new())),
            FieldValidation::Strict if !unknown.is_empty() => Err(DecodeError::Strict(unknown)),
            FieldValidation::Strict | FieldValidation::Warn => Ok((object, unknown)),
        }
    }
}

fn told(path: &str) -> String {
    format!("unknown field {}", quoted(path))
}

/// A stored object under the schema of now.
pub fn from_stored(object: &mut Object, version: &Version) {
    let root = std::mem::take(object.root_mut());
    let mut value = Value::Object(root);
    if !version.keeps_unknown {
        structural::prune(&mut value, &version.schema, true);
        structural::drop_nulls(&mut value, &version.schema);
    }
    structural::fill_defaults(&mut value, &version.schema);
    if let Value::Object(root) = value {
        *object.root_mut() = root;
    }
}

pub fn fill_defaults(object: &mut Object, schema: &Value) {
    let mut value = Value::Object(std::mem::take(object.root_mut()));
    structural::fill_defaults(&mut value, schema);
    if let Value::Object(root) = value {
        *object.root_mut() = root;
    }
}

type Each<'e> = &'e mut dyn FnMut(&mut Value, Place<'_>) -> Result<(), DecodeError>;

/// Calls `each` with the resources within a value.
fn each_resource(
    value: &mut Value,
    schema: &Value,
    place: Place<'_>,
    each: Each<'_>,
) -> Result<(), DecodeError> {
    if json::flag(schema, "x-kubernetes-embedded-resource") && value.is_object() {
        each(value, place)?;
    }
    match value {
        Value::Object(fields) => {
            let properties = json::get(schema, "properties");
            let additional = json::get(schema, "additionalProperties");
            for (name, value) in fields {
                let schema = properties.get(name).unwrap_or(additional);
                if schema.is_object() {
                    each_resource(value, schema, place.step(Step::Field(name)), each)?;
                }
            }
        }
        Value::Array(items) => {
            let of_item = json::get(schema, "items");
            for (index, item) in items.iter_mut().enumerate() {
                let place = place.step(Step::Index(index));
                each_resource(item, of_item, place, each)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Brings the metadata of a resource within into the form of its type; gives what is not known.
fn coerce(
    resource: &mut Value,
    place: Place<'_>,
    mode: FieldValidation,
) -> Result<Vec<String>, DecodeError> {
    for field in ["apiVersion", "kind"] {
        if let Some(value) = resource.get(field).filter(|value| !value.is_string()) {
            let why = format!("{place}.{field}: Invalid value: {value}: must be a string");
            return Err(DecodeError::Type(why));
        }
    }
    let Some(metadata) = resource.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    if metadata.is_null() {
        return Ok(Vec::new());
    }
    let shown = metadata.to_string();
    let unknown = decode::conform_in(envelope(), metadata, METADATA, mode);
    let unknown = unknown.map_err(|error| {
        DecodeError::Type(format!("{place}.metadata: Invalid value: {shown}: {error}"))
    })?;
    // Paths are told within the metadata.
    let whole = unknown.iter().map(|told| {
        let inner = told.strip_prefix("unknown field \"").unwrap_or(told);
        format!("unknown field \"{place}.metadata.{inner}")
    });
    Ok(whole.collect())
}
