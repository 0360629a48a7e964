//! `PATCH` of one object, or of a part of it: JSON patch, merge patch, strategic merge patch, and
//! server-side apply.

mod read; // The patch, and what it makes of a document.

pub use read::{Patch, apply, content, read};

use super::apply as server_side;
use super::asked::Asked;
use super::decode::Expected;
use super::write::{self, Wanted};
use super::write_options::{Kind, WriteOptions};
use crate::registry::Stored;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::decode::{DecodeError, FieldValidation};
use coracle_api::field::{FieldError, Path};
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use http::{Response, StatusCode};
use serde_json::Value;

pub async fn patch(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let content = content(asked)?;
    if content == body::Content::ApplyPatch {
        return server_side::apply(api, asked, request_body).await;
    }
    let bytes = body::read(request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Patch)?;
    let patch = read(content, bytes);
    let name = asked.info.name.as_str();
    let expected = Expected::of(asked.resource);
    let want = |stored: &Stored| {
        let patch = patch.as_ref().map_err(Status::clone)?;
        let current = stored.object.to_value();
        let patched = apply(patch, &current, &expected.type_name, asked, name)?;
        let (mut object, unknown) = conform(&expected, patched, &options, patch)?;
        asked.warnings.add(unknown);
        asked.resource.default(&mut object);
        settle(asked, &mut object)?;
        Ok(Wanted::unmanaged(object))
    };
    let updated = write::update(api, asked, name, &options, want).await?;
    Ok(asked
        .shape
        .object(StatusCode::OK, asked.resource, &updated.object))
}

/// A patch cannot move an object.
pub fn settle(asked: &Asked<'_>, object: &mut Object) -> Result<(), Status> {
    asked.settle_namespace(object)?;
    write::check_name(asked, object)
}

/// The patched document as an object of its type, with the warnings. What is none is the patch's
/// fault: 422 on the patch, of no object.
pub fn conform(
    expected: &Expected,
    patched: Value,
    options: &WriteOptions,
    patch: &Patch,
) -> Result<(Object, Vec<String>), Status> {
    let mode = options.field_validation;
    let strict = if mode == FieldValidation::Ignore {
        Vec::new()
    } else {
        patch.strict_errors().to_vec()
    };
    let shown = patch.shown(&patched);
    let refused = |why: String| {
        let error = FieldError::invalid(&Path::root("patch"), shown.clone(), why);
        let subject = Subject {
            group: "",
            resource: "",
            name: "",
        };
        Status::invalid(subject, &[error])
    };
    let formed = match patch {
        Patch::Strategic(..) => expected.convert(patched, mode),
        // A strategic patch goes into the type that the object has; the others make a document.
        Patch::Json(..) | Patch::Merge(..) => match expected.other_kind(&patched) {
            Some(why) => return Err(refused(why)),
            None => expected.conform(patched, mode),
        },
    };
    let (object, unknown) = formed.map_err(|error| match error {
        DecodeError::Strict(unknown) => {
            let all: Vec<String> = strict.iter().cloned().chain(unknown).collect();
            refused(DecodeError::Strict(all).to_string())
        }
        other => refused(other.to_string()),
    })?;
    if mode == FieldValidation::Strict && !strict.is_empty() {
        return Err(refused(DecodeError::Strict(strict).to_string()));
    }
    Ok((object, strict.into_iter().chain(unknown).collect()))
}
