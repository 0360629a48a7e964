//! Decodes bytes into an object of a known type, as Go's strict JSON decoder does.

use crate::object::Object;
use serde_json::Value;

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
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{0}")]
    Syntax(String),
    #[error("{0}")]
    Type(String),
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
    #[error("no schema for {0}")]
    UnknownType(String),
}

/// `apiVersion` and `kind` of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

pub fn decode(
    bytes: &[u8],
    _type_name: &str,
    _mode: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let value = serde_json::from_slice(bytes).map_err(|e| DecodeError::Syntax(e.to_string()))?;
    let object = Object::from_value(value).ok_or(DecodeError::Syntax("not an object".into()))?;
    Ok(Decoded {
        object,
        warnings: Vec::new(),
    })
}

pub fn conform(
    _value: &mut Value,
    _type_name: &str,
    _mode: FieldValidation,
) -> Result<Vec<String>, DecodeError> {
    Ok(Vec::new())
}

pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, DecodeError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| DecodeError::Syntax(e.to_string()))?;
    let text = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    Ok(TypeMeta {
        api_version: text("apiVersion"),
        kind: text("kind"),
    })
}
