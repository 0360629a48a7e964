//! From a body to an object of the kind that the endpoint takes.

use super::asked::Asked;
use coracle_api::apply;
use coracle_api::decode::{self, DecodeError, FieldValidation};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use serde_json::{Value, json};

/// The kind and type that a body must have.
#[derive(Clone, Debug)]
pub struct Expected {
    pub api_version: String,
    pub kind: &'static str,
    pub type_name: String,
}

impl Expected {
    pub fn of(resource: &Resource) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind,
            type_name: resource.schema.to_owned(),
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
        }
    }

    fn message(&self, error: &DecodeError, body: &[u8]) -> Status {
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        Status::bad_request(error.message(self.kind, version, body))
    }

    /// A body that names another kind or version is refused; one that names none is taken.
    fn check(&self, api_version: &str, kind: &str) -> Result<(), Status> {
        if !api_version.is_empty() && api_version != self.api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API \
                 version ({})",
                self.api_version
            )));
        }
        if !kind.is_empty() && kind != self.kind {
            return Err(Status::bad_request(format!(
                "the kind in the data ({kind}) does not match the expected kind ({})",
                self.kind
            )));
        }
        Ok(())
    }

    /// A patched document of another kind or version is refused, in upstream's words for a kind
    /// that it does not know.
    pub fn check_registered(&self, patched: &Value) -> Result<(), String> {
        let text = |name: &str| patched.get(name).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let is_own = (api_version.is_empty() || api_version == self.api_version)
            && (kind.is_empty() || kind == self.kind);
        if is_own {
            return Ok(());
        }
        Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        ))
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
        body: &[u8],
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), Status> {
        let meta = decode::type_meta(body).map_err(|error| self.message(&error, body))?;
        self.check(&meta.api_version, &meta.kind)?;
        let decoded = decode::decode(body, &self.type_name, mode)
            .map_err(|error| self.message(&error, body))?;
        let mut object = decoded.object;
        self.name(&mut object);
        Ok((object, decoded.warnings))
    }

    /// Brings a patched document into the form of a decoded one.
    pub fn conform(
        &self,
        mut value: Value,
        mode: FieldValidation,
    ) -> Result<(Object, Vec<String>), DecodeError> {
        let warnings = decode::conform(&mut value, &self.type_name, mode)?;
        let mut object = Object::from_value(value).unwrap_or_else(|| Object::new("", ""));
        self.name(&mut object);
        Ok((object, warnings))
    }
}
