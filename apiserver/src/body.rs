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

mod twice; // YAML whose maps may have a key twice.

/// Upstream's bound.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

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

/// The types of patches, in the order in which upstream names them.
const PATCHES: [(&str, Content); 4] = [
    ("application/json-patch+json", Content::JsonPatch),
    ("application/merge-patch+json", Content::MergePatch),
    (
        "application/strategic-merge-patch+json",
        Content::StrategicMergePatch,
    ),
    ("application/apply-patch+yaml", Content::ApplyPatch),
];

pub fn patch_types() -> impl Iterator<Item = &'static str> {
    PATCHES.into_iter().map(|(name, _)| name)
}

/// As the client wrote it; empty without one.
pub fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// The kind of a patch. Nothing but parameters may stand beside it.
pub fn patch_content(headers: &HeaderMap) -> Option<Content> {
    patch(content_type(headers).split(';').next().unwrap_or(""))
}

pub fn content(headers: &HeaderMap) -> Content {
    match media_type(content_type(headers)).as_str() {
        "" | "application/json" => Content::Json,
        "application/yaml" => Content::Yaml,
        protobuf::MEDIA_TYPE => Content::Protobuf,
        other => patch(other).unwrap_or(Content::Other),
    }
}

fn patch(name: &str) -> Option<Content> {
    let found = PATCHES.into_iter().find(|(own, _)| *own == name);
    found.map(|(_, content)| content)
}

/// The type alone, in lower case. One with parameters that are none is no type that we know.
fn media_type(value: &str) -> String {
    const NONE: &str = "*";
    let mut parts = value.split(';');
    let name = parts.next().unwrap_or("").trim().to_ascii_lowercase();
    let mut seen: Vec<&str> = Vec::new();
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let Some((key, text)) = part.split_once('=') else {
            return NONE.to_owned();
        };
        if !is_token(key) || text.is_empty() || seen.contains(&key) {
            return NONE.to_owned();
        }
        seen.push(key);
    }
    name
}

fn is_token(text: &str) -> bool {
    const SEPARATORS: &str = "()<>@,;:\\\"/[]?=";
    let fits = |one: char| one.is_ascii_graphic() && !SEPARATORS.contains(one);
    !text.is_empty() && text.chars().all(fits)
}

/// How long it may take is the request's to say.
pub async fn read(body: Body) -> Result<Bytes, Status> {
    // Boxed: the compiler cannot see through the error type of a limited body otherwise.
    let collected: BoxFuture<'static, _> = Limited::new(body, BODY_BYTES_MAX).collect().boxed();
    match collected.await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Status::request_too_large(format!(
                "Request entity too large: limit is {BODY_BYTES_MAX}"
            )))
        }
        Err(error) => Err(Status::bad_request(format!("the body broke off: {error}"))),
    }
}

/// A body in one of the formats of objects.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub content: Content,
    pub bytes: Bytes,
}

impl Encoded {
    /// Reads a body. One of another format is refused unread.
    pub async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Status> {
        let content = format(headers)?;
        let bytes = read(body).await?;
        Ok(Self { content, bytes })
    }

    /// A body that is read, by its headers.
    pub fn of(headers: &HeaderMap, bytes: Bytes) -> Result<Self, Status> {
        let content = format(headers)?;
        Ok(Self { content, bytes })
    }

    /// As JSON, or why it is none.
    pub fn to_json(&self) -> Result<Bytes, String> {
        match self.content {
            Content::Yaml => yaml(&self.bytes).map(|(json, _)| json),
            Content::Protobuf => {
                let decoded = protobuf::decode(&self.bytes).map_err(|error| error.to_string())?;
                Ok(decoded.1.to_string().into())
            }
            _ => Ok(self.bytes.clone()),
        }
    }
}

fn format(headers: &HeaderMap) -> Result<Content, Status> {
    let content = content(headers);
    if matches!(content, Content::Json | Content::Yaml | Content::Protobuf) {
        return Ok(content);
    }
    Err(Status::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf",
    ))
}

/// A YAML body as JSON, and the keys that it has twice, in upstream's words.
pub fn yaml(bytes: &[u8]) -> Result<(Bytes, Option<String>), String> {
    let read = twice::read(bytes)?;
    Ok((read.value.to_string().into(), read.twice))
}

/// The configuration of an apply, and what it has twice, in upstream's words.
pub fn configuration(bytes: &[u8]) -> Result<(Map<String, Value>, Option<String>), String> {
    const CONVERTING: &str = "error converting YAML to JSON";
    let read = twice::read(bytes).map_err(|why| format!("{CONVERTING}: {why}"))?;
    let twice = read.twice.map(|twice| format!("{CONVERTING}: {twice}"));
    match read.value {
        Value::Object(map) => Ok((map, twice)),
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
