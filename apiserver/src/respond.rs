//! Answers: which form a client takes, and bodies in that form.

use crate::registry;
use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::protobuf::{self, ProtobufError};
use coracle_api::resource::Resource;
use coracle_api::status::Status;
use coracle_api::table::{self, Include};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

pub mod accept; // The Accept header.

pub use accept::{Form, negotiate};

const WARNING: HeaderName = HeaderName::from_static("warning");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const PROTOBUF: HeaderValue = HeaderValue::from_static(protobuf::MEDIA_TYPE);

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// JSON bytes as they are.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    typed(code, JSON, bytes)
}

fn typed(code: StatusCode, content_type: HeaderValue, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A JSON document, as YAML or protobuf where the client asked for it.
pub fn document(code: StatusCode, value: &Value, form: Form) -> Response<Body> {
    match (form, value) {
        (Form::Yaml, _) => match serde_yaml_ng::to_string(value) {
            Ok(text) => typed(code, YAML, text),
            Err(_) => json_bytes(code, value.to_string()),
        },
        (Form::Protobuf, Value::Object(object)) => {
            protobuf_or(code, protobuf::encode_object(object), || value.to_string())
        }
        _ => json_bytes(code, value.to_string()),
    }
}

/// What has no protobuf form goes out as JSON: the client sees it by the Content-Type.
pub fn protobuf_or<B: Into<Bytes>>(
    code: StatusCode,
    encoded: Result<Vec<u8>, ProtobufError>,
    json: impl FnOnce() -> B,
) -> Response<Body> {
    match encoded {
        Ok(bytes) => typed(code, PROTOBUF, bytes),
        Err(error) => {
            tracing::debug!(%error, "answered in JSON instead of protobuf");
            json_bytes(code, json())
        }
    }
}

/// The one place where a failure becomes an answer.
pub fn failure(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_bytes(code, status.to_value().to_string());
    if let Some(seconds) = status.details["retryAfterSeconds"].as_u64() {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A `Warning` header each, as RFC 7234 and kubectl have it. What a header cannot carry is
/// replaced.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let clean: String = warning
            .chars()
            .map(|one| {
                if one.is_ascii() && !one.is_ascii_control() {
                    one
                } else {
                    '?'
                }
            })
            .collect();
        let quoted = clean.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
}

/// How objects of a request are to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub form: Form,
    pub include: Include,
    /// Seconds since the epoch, for ages.
    pub now: i64,
}

impl Shape {
    pub fn of(request: &Parts, has_table: bool, now: i64) -> Result<Self, Status> {
        let accept = request.headers.get_all(ACCEPT);
        let texts: Vec<&str> = accept
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let form = negotiate(&texts.join(","), has_table)?;
        let query = crate::query::Query::parse(request.uri.query().unwrap_or(""));
        let include = Include::parse(query.text("includeObject")).ok_or_else(|| {
            let text = query.text("includeObject");
            Status::bad_request(format!("unrecognized includeObject value: {text:?}"))
        })?;
        Ok(Self { form, include, now })
    }

    /// One object.
    pub fn object(&self, code: StatusCode, resource: &Resource, object: &Object) -> Response<Body> {
        match self.form {
            Form::Json => json_bytes(code, serialized(object)),
            Form::Yaml => document(code, &object.to_value(), Form::Yaml),
            Form::Protobuf => {
                let encoded = protobuf::encode_object(object.root());
                protobuf_or(code, encoded, || serialized(object))
            }
            Form::Table => {
                let metadata = json!({ "resourceVersion": object.resource_version() });
                let table =
                    table::build(resource, [object], metadata, self.include, true, self.now);
                json_bytes(code, table.to_string())
            }
            Form::Metadata => json_bytes(code, table::partial_metadata(object).to_string()),
        }
    }
}

/// An object with its `resourceVersion`, as it would be stored.
pub fn serialized(object: &Object) -> Vec<u8> {
    let (mut bytes, place) = registry::encode(object);
    let version = object.resource_version();
    if version.is_empty() {
        return object.to_value().to_string().into_bytes();
    }
    bytes.splice(place..place, version.bytes());
    bytes
}
