//! `PUT` of one object, or of a part of it.

use super::asked::Asked;
use super::decode::Expected;
use super::write::{self, Updated, Wanted};
use crate::options::WriteOptions;
use crate::respond;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&asked.query, "UpdateOptions")?;
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let expected = Expected::of(asked.resource);
    let (mut object, mut warnings) = expected.decode(&bytes, options.field_validation)?;
    drop(bytes);
    let (rules, name) = (asked.resource.rules, asked.info.name.as_str());
    rules.default(&mut object);
    warnings.extend(rules.warnings(&object));
    let want = |_: &crate::registry::Stored| {
        Ok(Wanted {
            object: object.clone(),
            warnings: Vec::new(),
        })
    };
    let updated = match write::update(api, asked, name, options.dry_run, want).await {
        Err(status) if status.code == 404 && creates(asked) => {
            create_instead(api, asked, object, options.dry_run).await?
        }
        other => other?,
    };
    let code = if updated.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = asked.shape.object(code, asked.resource, &updated.object);
    respond::warn(response.headers_mut(), &warnings);
    Ok(response)
}

fn creates(asked: &Asked<'_>) -> bool {
    asked.subresource.is_none() && asked.resource.rules.create_on_update()
}

async fn create_instead(
    api: &Api,
    asked: &Asked<'_>,
    mut object: coracle_api::object::Object,
    dry_run: bool,
) -> Result<Updated, Status> {
    let name = asked.info.name.as_str();
    if object.name().is_empty() {
        object.set(&["metadata", "name"], name.into());
    } else if object.name() != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            object.name()
        )));
    }
    object.remove(&["metadata", "resourceVersion"]);
    let object = write::create(api, asked, object, dry_run).await?;
    Ok(Updated {
        object,
        warnings: Vec::new(),
        created: true,
    })
}
