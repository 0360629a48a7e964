//! Bodies of kinds that users brought: documents first, whose fields are those of a definition.

use super::{Expected, with_keys};
use crate::body::{self, Content, Encoded};
use bytes::Bytes;
use coracle_api::custom::Version;
use coracle_api::decode::{self, DecodeError, Decoded, FieldValidation, TypeMeta, strict};
use coracle_api::object::Object;
use coracle_api::status::Status;
use serde_json::Value;

impl Expected {
    pub(super) fn decode_custom(
        &self,
        custom: &Version,
        body: &Encoded,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), Status> {
        let bytes = &body.bytes;
        let unrecognized = |why: String| self.unrecognized(&why, bytes);
        let (json, twice) = match body.content {
            Content::Protobuf => {
                return Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types \
                     include: application/json, application/yaml",
                ));
            }
            Content::Yaml => body::yaml(bytes).map_err(unrecognized)?,
            _ => (bytes.clone(), None),
        };
        let meta = decode::type_meta(&json).map_err(|error| self.message(&error, bytes))?;
        self.check_custom(&meta, bytes)?;
        let (value, keys) = self.read(&json)?;
        let decoded = self.admitted(custom, value, keys, mode);
        let decoded = decoded.map(|(object, warnings)| Decoded { object, warnings });
        let decoded = with_keys(twice, decoded, mode);
        let decoded = decoded.map_err(|error| self.message(&error, bytes))?;
        Ok((decoded.object, decoded.warnings))
    }

    /// A document, and the keys that it has twice.
    fn read(&self, json: &Bytes) -> Result<(Value, Vec<String>), Status> {
        let refused = |error: serde_json::Error| {
            let why = decode::syntax_text(&error, json);
            self.message(&DecodeError::Syntax(why), json)
        };
        let (value, keys) = strict::value(json).map_err(refused)?;
        if value.is_object() {
            return Ok((value, keys));
        }
        let why = "json: cannot unmarshal into Go value of type map[string]interface {}";
        Err(self.message(&DecodeError::Syntax(why.to_owned()), json))
    }

    /// Upstream wants both said, and of this version.
    fn check_custom(&self, meta: &TypeMeta, body: &[u8]) -> Result<(), Status> {
        let shown = String::from_utf8_lossy(body);
        if meta.kind.is_empty() {
            let why = format!("Object 'Kind' is missing in '{shown}'");
            return Err(self.unrecognized(&why, body));
        }
        if !meta.api_version.is_empty() && meta.api_version != self.api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                meta.api_version, self.api_version
            )));
        }
        if meta.kind != self.kind {
            return Err(Status::bad_request(format!(
                "the kind in the data ({}) does not match the expected kind ({})",
                meta.kind, self.kind
            )));
        }
        Ok(())
    }

    pub(super) fn admitted(
        &self,
        custom: &Version,
        value: Value,
        keys: Vec<String>,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        let (mut object, warnings) = custom.admit(value, keys, mode)?;
        decode::check_nesting(object.root())?;
        self.name(&mut object);
        Ok((object, warnings))
    }
}

/// Why a patched document is none of the kind.
pub(super) fn other_kind(expected: &Expected, patched: &Value) -> Option<String> {
    let text = |name: &str| patched.get(name).and_then(Value::as_str).unwrap_or("");
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != expected.api_version {
        return Some(format!("apiVersion must be {}", expected.api_version));
    }
    (kind != expected.kind).then(|| format!("kind must be {}", expected.kind))
}
