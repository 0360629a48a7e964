//! Patches: read once, and applied as often as somebody else gets ahead.

use crate::body::{self, Content};
use crate::verbs::asked::Asked;
use bytes::Bytes;
use coracle_api::decode::{self, strict};
use coracle_api::patch::{self, PatchError};
use coracle_api::status::Status;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub enum Patch {
    Json(Bytes, Vec<String>),
    Merge(Value, Vec<String>),
    Strategic(Value, Vec<String>),
}

impl Patch {
    /// Fields that the patch itself has twice, or that no operation has.
    pub fn strict_errors(&self) -> &[String] {
        match self {
            Self::Json(_, errors) | Self::Merge(_, errors) | Self::Strategic(_, errors) => errors,
        }
    }

    /// What an answer shows for a patch that made `patched` of an object.
    pub fn shown(&self, patched: &Value) -> String {
        match self {
            Self::Strategic(value, _) => patch::go_text(&without_followed(value)),
            Self::Json(..) | Self::Merge(..) => patched.to_string(),
        }
    }
}

/// Upstream takes out of a strategic patch what it has followed: lists of which it knows the
/// order, and the directives.
fn without_followed(patch: &Value) -> Value {
    const ORDER: &str = "$setElementOrder/";
    let Value::Object(map) = patch else {
        return patch.clone();
    };
    let kept = map
        .iter()
        .filter(|(key, _)| !key.starts_with('$') && !map.contains_key(&format!("{ORDER}{key}")));
    kept.map(|(key, value)| (key.clone(), without_followed(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// The kind of patch that the request is. The router took what has one of them among others.
pub fn content(asked: &Asked<'_>) -> Result<Content, Status> {
    // Nobody knows how the lists of a kind that users brought merge with patches.
    let is_custom = asked.resource.rules.custom().is_some();
    let is_taken = |content: &Content| !(is_custom && *content == Content::StrategicMergePatch);
    let content = body::patch_content(&asked.request.headers).filter(is_taken);
    content.ok_or_else(|| {
        let types = body::patch_types().filter(|name| !(is_custom && name.contains("strategic")));
        Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            types.collect::<Vec<_>>().join(", ")
        ))
    })
}

pub fn read(content: Content, bytes: Bytes) -> Result<Patch, Status> {
    if content == Content::JsonPatch {
        if bytes.trim_ascii() == b"null" {
            return Ok(Patch::Json(Bytes::from_static(b"[]"), Vec::new()));
        }
        let errors = strict::json_patch_errors(&bytes);
        return Ok(Patch::Json(bytes, errors));
    }
    let is_merge = content == Content::MergePatch;
    let refused = |text: String| {
        Status::bad_request(if is_merge {
            format!("error decoding patch: {text}")
        } else {
            text
        })
    };
    let (value, errors) =
        strict::value(&bytes).map_err(|error| refused(decode::syntax_text(&error, &bytes)))?;
    match value {
        Value::Null if is_merge => Err(Status::bad_request("Invalid JSON Patch")),
        // Upstream reads a null into an empty map.
        Value::Null => Ok(Patch::Strategic(Value::Object(Map::new()), errors)),
        Value::Object(_) if is_merge => Ok(Patch::Merge(value, errors)),
        Value::Object(_) => Ok(Patch::Strategic(value, errors)),
        other => Err(refused(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            patch::go_kind(&other)
        ))),
    }
}

pub fn apply(
    patch: &Patch,
    current: &Value,
    type_name: &str,
    asked: &Asked<'_>,
    name: &str,
) -> Result<Value, Status> {
    let patched = match patch {
        Patch::Json(bytes, _) => patch::json_patch(current, bytes),
        Patch::Merge(value, _) => patch::merge_patch(current, value),
        Patch::Strategic(value, _) => patch::strategic_merge_patch(current, value, type_name),
    };
    patched.map_err(|error| match error {
        PatchError::Malformed(text) => Status::bad_request(text),
        PatchError::Failed(text) => Status::failed(text),
        PatchError::TooManyOperations(_) => Status::request_too_large(error.to_string()),
        PatchError::NotApplicable(text) | PatchError::TestFailed(text) => {
            let is_json = matches!(patch, Patch::Json(..));
            let mut status = Status::invalid(asked.subject(name), &[]);
            (status.message, status.details) = if is_json {
                (patch::REJECTED.to_owned(), json!({}))
            } else {
                (text, Value::Null)
            };
            status
        }
    })
}
