//! Request bodies: bounded, and JSON by the time anything looks at them.

use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::protobuf;
use coracle_api::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};
use std::time::Duration;

mod twice; // YAML whose maps may have a key twice.

/// Upstream's bound.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A client that takes longer to send its body is cut off.
const BODY_MAX: Duration = Duration::from_secs(60);

/// What a request body is, by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Json,
    Yaml,
    Protobuf,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    ApplyPatch,
    Other,
}

pub fn content(headers: &HeaderMap) -> Content {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    match value.split(';').next().unwrap_or("").trim() {
        "" | "application/json" => Content::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => Content::Yaml,
        protobuf::MEDIA_TYPE => Content::Protobuf,
        "application/json-patch+json" => Content::JsonPatch,
        "application/merge-patch+json" => Content::MergePatch,
        "application/strategic-merge-patch+json" => Content::StrategicMergePatch,
        "application/apply-patch+yaml" => Content::ApplyPatch,
        _ => Content::Other,
    }
}

pub async fn read(body: Body) -> Result<Bytes, Status> {
    // Boxed: the compiler cannot see through the error type of a limited body otherwise.
    let collected: BoxFuture<'static, _> = Limited::new(body, BODY_BYTES_MAX).collect().boxed();
    match tokio::time::timeout(BODY_MAX, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Status::request_too_large(format!(
                "Request entity too large: limit is {BODY_BYTES_MAX}"
            )))
        }
        Ok(Err(error)) => Err(Status::bad_request(format!("the body broke off: {error}"))),
        Err(_) => Err(Status::timeout("the body did not arrive in time", 1)),
    }
}

/// The body of a create or update, as JSON.
pub async fn read_object(headers: &HeaderMap, body: Body) -> Result<Bytes, Status> {
    let content = content(headers);
    if !matches!(content, Content::Json | Content::Yaml | Content::Protobuf) {
        return Err(unknown_format());
    }
    to_json(content, read(body).await?)
}

/// A body of one of the formats of objects, as JSON.
pub fn to_json(content: Content, bytes: Bytes) -> Result<Bytes, Status> {
    match content {
        Content::Json => Ok(bytes),
        Content::Yaml => yaml_to_json(&bytes),
        Content::Protobuf => protobuf_to_json(&bytes),
        _ => Err(unknown_format()),
    }
}

fn unknown_format() -> Status {
    Status::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
}

fn protobuf_to_json(bytes: &[u8]) -> Result<Bytes, Status> {
    let (_, value) =
        protobuf::decode(bytes).map_err(|error| Status::bad_request(error.to_string()))?;
    Ok(value.to_string().into())
}

/// The configuration of an apply, and what it has twice, in upstream's words.
pub fn configuration(bytes: &[u8]) -> Result<(Map<String, Value>, Option<String>), String> {
    let read = twice::read(bytes)?;
    match read.value {
        Value::Object(map) => Ok((map, read.twice)),
        Value::Null => Ok((Map::new(), None)),
        other => Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            }
        )),
    }
}

pub fn yaml_to_json(bytes: &[u8]) -> Result<Bytes, Status> {
    let value: serde_json::Value = serde_yaml_ng::from_slice(bytes)
        .map_err(|error| Status::bad_request(format!("error parsing YAML: {error}")))?;
    Ok(value.to_string().into())
}
