//! `GET` of one object: its stored bytes, as they are.

use super::asked::Asked;
use crate::Api;
use crate::registry;
use crate::respond::{Form, json_bytes};
use crate::tunnel::Body;
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let (resource, name) = (asked.resource, asked.info.name.as_str());
    if asked.shape.form == Form::Json && !registry::is_second_view(resource) {
        let entry = api.registry.entry(resource, asked.namespace(), name);
        let entry = entry.ok_or_else(|| Status::not_found(asked.subject(name)))?;
        return Ok(json_bytes(StatusCode::OK, entry.value));
    }
    let stored = api.registry.get(resource, asked.namespace(), name)?;
    Ok(asked.shape.object(StatusCode::OK, resource, &stored.object))
}
