//! `PATCH` of one object, or of a part of it: JSON patch, merge patch, strategic merge patch.

use super::asked::Asked;
use super::decode::Expected;
use super::write::{self, Wanted};
use crate::body::{self, Content};
use crate::options::WriteOptions;
use crate::registry::Stored;
use crate::tunnel::Body;
use crate::{Api, respond};
use bytes::Bytes;
use coracle_api::decode::{self, FieldValidation};
use coracle_api::field::{FieldError, Path};
use coracle_api::object::Object;
use coracle_api::patch::{self, PatchError};
use coracle_api::status::{Status, Subject};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::Value;

/// A patch, read once and applied as often as somebody else gets ahead.
#[derive(Debug)]
pub enum Patch {
    Json(Bytes),
    Merge(Value),
    Strategic(Value),
}

pub async fn patch(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&asked.query, "PatchOptions")?;
    let patch = read(asked, request_body).await?;
    let name = asked.info.name.as_str();
    let expected = Expected::of(asked.resource);
    let want = |stored: &Stored| {
        let current = stored.object.to_value();
        let patched = apply(&patch, &current, &expected.type_name, asked, name)?;
        let (mut object, mut warnings) = conform(&expected, patched, options, &patch)?;
        asked.resource.rules.default(&mut object);
        warnings.extend(asked.resource.rules.warnings(&object));
        Ok(Wanted { object, warnings })
    };
    let updated = write::update(api, asked, name, options.dry_run, want).await?;
    let mut response = asked
        .shape
        .object(StatusCode::OK, asked.resource, &updated.object);
    respond::warn(response.headers_mut(), &updated.warnings);
    Ok(response)
}

pub async fn read(asked: &Asked<'_>, request_body: Body) -> Result<Patch, Status> {
    let content = body::content(&asked.request.headers);
    if !matches!(
        content,
        Content::JsonPatch | Content::MergePatch | Content::StrategicMergePatch
    ) {
        let given = asked.request.headers.get(CONTENT_TYPE);
        return Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, \
             application/strategic-merge-patch+json (got {:?})",
            given.and_then(|value| value.to_str().ok()).unwrap_or("")
        )));
    }
    let bytes = body::read(request_body).await?;
    if content == Content::JsonPatch {
        return Ok(Patch::Json(bytes));
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        Status::bad_request(format!(
            "error decoding patch: {}",
            decode::syntax_text(&error, &bytes)
        ))
    })?;
    Ok(if content == Content::MergePatch {
        Patch::Merge(value)
    } else {
        Patch::Strategic(value)
    })
}

pub fn apply(
    patch: &Patch,
    current: &Value,
    type_name: &str,
    asked: &Asked<'_>,
    name: &str,
) -> Result<Value, Status> {
    let patched = match patch {
        Patch::Json(bytes) => patch::json_patch(current, bytes),
        Patch::Merge(value) => patch::merge_patch(current, value),
        Patch::Strategic(value) => patch::strategic_merge_patch(current, value, type_name),
    };
    patched.map_err(|error| match error {
        PatchError::Malformed(text) => Status::bad_request(text),
        PatchError::TooManyOperations(_) => Status::request_too_large(error.to_string()),
        PatchError::NotApplicable(text) => {
            let text = if matches!(patch, Patch::Json(_)) {
                patch::REJECTED.to_owned()
            } else {
                text
            };
            let mut status = Status::invalid(asked.subject(name), &[]);
            status.message = text;
            status.details = Value::Null;
            status
        }
    })
}

/// A result that is no object of its type is the patch's fault: 422 on the patch, of no object.
fn conform(
    expected: &Expected,
    patched: Value,
    options: WriteOptions,
    patch: &Patch,
) -> Result<(Object, Vec<String>), Status> {
    expected
        .conform(patched, options.field_validation)
        .map_err(|error| {
            if matches!(error, decode::DecodeError::Strict(_))
                && options.field_validation == FieldValidation::Strict
            {
                return Status::bad_request(error.to_string());
            }
            let shown = match patch {
                Patch::Json(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Patch::Merge(value) | Patch::Strategic(value) => value.to_string(),
            };
            let error = FieldError::invalid(&Path::root("patch"), shown, error.to_string());
            let subject = Subject {
                group: "",
                resource: "",
                name: "",
            };
            Status::invalid(subject, &[error])
        })
}
