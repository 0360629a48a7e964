//! `PUT` of one object, or of a part of it.

use super::asked::Asked;
use super::decode::Expected;
use super::write::{self, New, Updated, Wanted};
use super::write_options::{Kind, WriteOptions};
use crate::body::Encoded;
use crate::registry::Stored;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::object::Object;
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let bytes = body::read(request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Update)?;
    let body = Encoded::of(&asked.request.headers, bytes)?;
    let expected = Expected::of(asked.resource);
    let (mut object, unknown) = expected.decode(&body, options.field_validation)?;
    asked.warnings.add(unknown);
    drop(body);
    asked.resource.default(&mut object);
    asked.settle_namespace(&mut object)?;
    write::check_name(asked, &object)?;
    let name = asked.info.name.as_str();
    let want = |stored: &Stored| {
        check_uid(asked, &object, stored.object.uid())?;
        Ok(Wanted::unmanaged(object.clone()))
    };
    let updated = match write::update(api, asked, name, &options, want).await {
        Err(status) if status.code == 404 && creates(asked) => {
            create_instead(api, asked, object, &options).await?
        }
        other => other?,
    };
    let code = if updated.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(asked.shape.object(code, asked.resource, &updated.object))
}

/// A `uid` in the body says which object is meant.
fn check_uid(asked: &Asked<'_>, object: &Object, uid: &str) -> Result<(), Status> {
    if object.uid().is_empty() || object.uid() == uid {
        return Ok(());
    }
    let why = format!(
        "Precondition failed: UID in precondition: {}, UID in object meta: {uid}",
        object.uid()
    );
    Err(Status::conflict(asked.subject(&asked.info.name), &why))
}

fn creates(asked: &Asked<'_>) -> bool {
    asked.subresource.is_none() && asked.resource.rules.create_on_update()
}

async fn create_instead(
    api: &Api,
    asked: &Asked<'_>,
    mut object: Object,
    options: &WriteOptions,
) -> Result<Updated, Status> {
    check_uid(asked, &object, "")?;
    write::version_of(object.resource_version())?;
    object.remove(&["metadata", "resourceVersion"]);
    write::may_create(api, asked)?;
    let object = write::create(api, asked, New::unmanaged(object), options).await?;
    Ok(Updated {
        object,
        created: true,
    })
}
