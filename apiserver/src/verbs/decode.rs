//! From a body to an object of the kind that the endpoint takes.

mod custom; // Kinds that users brought.

use super::asked::Asked;
use crate::body::{self, Content, Encoded};
use bytes::Bytes;
use coracle_api::custom::Version;
use coracle_api::decode::{self, DecodeError, Decoded, FieldValidation, TypeMeta};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::{apply, protobuf, scheme};
use serde_json::{Value, json};
use std::sync::Arc;

/// The kind and type that a body must have.
#[derive(Clone, Debug)]
pub struct Expected {
    pub api_version: String,
    pub kind: &'static str,
    pub type_name: String,
    /// What a definition says of the kind, where users brought it.
    pub custom: Option<Arc<Version>>,
}

impl Expected {
    pub fn of(resource: &Resource) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind,
            type_name: resource.schema.to_owned(),
            custom: resource.rules.custom(),
        }
    }

    /// The body of the asked subresource, where that has a kind of its own.
    pub fn of_request(asked: &Asked<'_>) -> Self {
        let Some((group, version, kind)) = asked.subresource.and_then(|one| one.body) else {
            return Self::of(asked.resource);
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let package = match group {
            "" => "core",
            other => other.split('.').next().unwrap_or(other),
        };
        Self {
            api_version,
            kind,
            type_name: format!("io.k8s.api.{package}.{version}.{kind}"),
            custom: None,
        }
    }

    pub fn message(&self, error: &DecodeError, body: &[u8]) -> Status {
        Status::bad_request(error.message(self.kind, self.version(), body))
    }

    fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// A body that names another kind or version is refused; one that names none is taken.
    fn check(&self, meta: &TypeMeta, body: &[u8]) -> Result<(), Status> {
        if !scheme::is_group_version(&meta.api_version) {
            let why = format!("unexpected GroupVersion string: {}", meta.api_version);
            return Err(self.unrecognized(&why, body));
        }
        let expected = scheme::Kind {
            api_version: &self.api_version,
            kind: self.kind,
        };
        let found = scheme::Kind {
            api_version: &meta.api_version,
            kind: &meta.kind,
        };
        match scheme::refusal(expected, found) {
            None => Ok(()),
            Some(why) => Err(Status::bad_request(why)),
        }
    }

    /// A body that is no document of any kind.
    fn unrecognized(&self, why: &str, body: &[u8]) -> Status {
        Status::bad_request(decode::unrecognized(self.kind, why, body))
    }

    fn name(&self, object: &mut Object) {
        object.set(&["apiVersion"], self.api_version.as_str().into());
        object.set(&["kind"], self.kind.into());
        // An empty list asks to forget all managers; in this form it outlives defaulting.
        let managers = object.get_mut(&["metadata", "managedFields"]);
        if let Some(managers) = managers.filter(|list| apply::is_reset(list)) {
            *managers = json!([{}]);
        }
    }

    /// Decodes a body strictly, leniently or with warnings.
    pub fn decode(
        &self,
        body: &Encoded,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), Status> {
        if let Some(custom) = &self.custom {
            return self.decode_custom(custom, body, mode);
        }
        let bytes = &body.bytes;
        let unrecognized = |why: String| self.unrecognized(&why, bytes);
        let (json, twice) = match body.content {
            Content::Protobuf => return self.decode_protobuf(bytes, mode),
            Content::Yaml => body::yaml(bytes).map_err(unrecognized)?,
            _ => (bytes.clone(), None),
        };
        // Go reads a null into an object without fields.
        let json = match json.trim_ascii() {
            b"null" => Bytes::from_static(b"{}"),
            _ => json,
        };
        let meta = decode::type_meta(&json).map_err(|error| self.message(&error, bytes))?;
        self.check(&meta, bytes)?;
        let decoded = decode::decode(&json, &self.type_name, mode);
        let decoded = with_keys(twice, decoded, mode);
        let decoded = decoded.map_err(|error| self.message(&error, bytes))?;
        let mut object = decoded.object;
        let checked = decode::check_nesting(object.root());
        checked.map_err(|error| self.message(&error, bytes))?;
        self.name(&mut object);
        Ok((object, decoded.warnings))
    }

    /// The kind is looked at first: what its bytes mean depends on it.
    fn decode_protobuf(
        &self,
        bytes: &[u8],
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), Status> {
        let meta = protobuf::type_meta(bytes);
        let meta = meta.map_err(|error| self.unrecognized(&error.to_string(), bytes))?;
        self.check(&meta, bytes)?;
        let decoded = protobuf::decode_as(bytes, &self.type_name);
        let (_, value) = decoded.map_err(|error| {
            let (kind, version) = (self.kind, self.version());
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {error}"
            ))
        })?;
        let conformed = self.conform(value, mode);
        conformed.map_err(|error| self.message(&error, bytes))
    }

    /// Why a patched document is of another kind than it was.
    pub fn other_kind(&self, patched: &Value) -> Option<String> {
        if self.custom.is_some() {
            return custom::other_kind(self, patched);
        }
        let text = |name: &str| patched.get(name).and_then(Value::as_str).unwrap_or("");
        let expected = scheme::Kind {
            api_version: &self.api_version,
            kind: self.kind,
        };
        let found = scheme::Kind {
            api_version: text("apiVersion"),
            kind: text("kind"),
        };
        scheme::mismatch(expected, found)
    }

    /// Brings a patched document into the form of a decoded one.
    pub fn conform(
        &self,
        value: Value,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        if let Some(custom) = &self.custom {
            return self.admitted(custom, value, Vec::new(), mode);
        }
        self.formed(value, |value| decode::conform(value, &self.type_name, mode))
    }

    /// [`Self::conform`] of what a strategic merge patch made.
    pub fn convert(
        &self,
        value: Value,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        self.formed(value, |value| decode::convert(value, &self.type_name, mode))
    }

    fn formed(
        &self,
        mut value: Value,
        form: impl FnOnce(&mut Value) -> Result<Vec<String>, DecodeError>,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        let warnings = form(&mut value)?;
        let mut object = Object::from_value(value).unwrap_or_else(|| Object::new("", ""));
        decode::check_nesting(object.root())?;
        self.name(&mut object);
        Ok((object, warnings))
    }
}

/// Keys that are there twice come before the fields that are not known.
fn with_keys(
    twice: Option<String>,
    decoded: Result<Decoded, DecodeError>,
    mode: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let Some(twice) = twice else {
        return decoded;
    };
    match (decoded, mode) {
        (Err(DecodeError::Strict(errors)), _) => {
            let all = std::iter::once(twice).chain(errors);
            Err(DecodeError::Strict(all.collect()))
        }
        (Ok(_), FieldValidation::Strict) => Err(DecodeError::Strict(vec![twice])),
        (Ok(mut decoded), FieldValidation::Warn) => {
            // As upstream: a header has one line, the last.
            let last = twice.lines().last().unwrap_or_default();
            decoded.warnings.insert(0, last.trim().to_owned());
            Ok(decoded)
        }
        (decoded, _) => decoded,
    }
}
