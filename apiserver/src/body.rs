//! Request bodies: bounded, and JSON by the time anything looks at them.

use crate::tunnel::Body;
use bytes::Bytes;
use coracle_api::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::time::Duration;

/// Upstream's bound.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A client that takes longer to send its body is cut off.
const BODY_MAX: Duration = Duration::from_secs(60);

/// What a request body is, by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Json,
    Yaml,
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
    let bytes = match content {
        Content::Json => read(body).await?,
        Content::Yaml => yaml_to_json(&read(body).await?)?,
        _ => {
            let media_type = headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            return Err(Status::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml (got {:?})",
                media_type.unwrap_or("")
            )));
        }
    };
    Ok(bytes)
}

pub fn yaml_to_json(bytes: &[u8]) -> Result<Bytes, Status> {
    let value: serde_json::Value = serde_yaml_ng::from_slice(bytes)
        .map_err(|error| Status::bad_request(format!("error parsing YAML: {error}")))?;
    Ok(value.to_string().into())
}
