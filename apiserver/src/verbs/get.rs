//! `GET` of one object: its stored bytes, as they are.

use super::asked::Asked;
use super::list::too_new;
use crate::Api;
use crate::options;
use crate::registry;
use crate::tunnel::Body;
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub async fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let (resource, name) = (asked.resource, asked.info.name.as_str());
    if options::boolean(&asked.query, "export") == Some(true) {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Status::bad_request(why));
    }
    let least = options::revision(asked.query.text("resourceVersion"))
        .map_err(options::unreadable_revision)?;
    let least = least.unwrap_or_default();
    let snapshot = api.registry.snapshot_not_older(resource, least).await;
    let snapshot = snapshot.map_err(|newest| too_new(least, newest))?;
    let entry = snapshot
        .get(&registry::key(asked.namespace(), name))
        .ok_or_else(|| Status::not_found(asked.subject(name)))?;
    let values = vec![entry.value.clone()];
    let values = api.converter.in_version(resource, values).await?;
    let value = values.first().unwrap_or(&entry.value);
    if !registry::is_second_view(resource)
        && let Some(response) = asked.shape.stored(resource, value)
    {
        return Ok(response);
    }
    let object = registry::decode(resource, value)
        .ok_or_else(|| Status::internal(format!("the stored object {name:?} cannot be read")))?;
    Ok(asked.shape.object(StatusCode::OK, resource, &object))
}
