//! The subresource `eviction`: deletes a pod as `kubectl drain` asks for it.
//!
//! The pod's status says why it ends. There is no budget of disruptions to ask yet: the kind is
//! not in the catalogue.

use super::asked::Asked;
use super::decode::Expected;
use super::delete;
use super::write::ATTEMPTS_MAX;
use super::write_options::{Kind, WriteOptions};
use crate::admission::Operation;
use crate::options::DeleteOptions;
use crate::registry::{self, Refusal};
use crate::respond::json_bytes;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::kinds::pod::eviction;
use coracle_api::resource::Durability;
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub const SUBRESOURCE: &str = "eviction";

pub async fn evict(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let (mut object, _) = Expected::of_request(asked).decode(&bytes, options.field_validation)?;
    let name = asked.info.name.as_str();
    if !object.name().is_empty() && object.name() != name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    asked.settle_namespace(&mut object)?;
    let mut deletion =
        DeleteOptions::from_body(object.get(&["deleteOptions"]).unwrap_or(&Value::Null))?;
    deletion.dry_run |= options.dry_run;
    let attributes = asked.attributes(Operation::Create, name, None, deletion.dry_run);
    api.access
        .admission
        .mutate(&mut object, &attributes)
        .await?;
    api.access.admission.validate(Some(&object), &attributes)?;
    if !deletion.dry_run {
        say_why(api, asked, name, &deletion).await?;
    }
    delete::one(api, asked, name, &deletion).await?;
    let answer = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Ok(json_bytes(StatusCode::CREATED, answer.to_string()))
}

async fn say_why(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let (resource, namespace) = (asked.resource, asked.namespace());
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.registry.get(resource, namespace, name)?;
        delete::check_preconditions(asked, name, &stored.object, options)?;
        if stored.object.is_deleting() {
            return Ok(());
        }
        let mut pod = stored.object;
        eviction::mark(&mut pod, &format_time(asked.now));
        let expect = Expect::At(stored.revision);
        match api
            .registry
            .put(resource, &pod, expect, Durability::Synced)
            .await
        {
            Ok(_) => return Ok(()),
            Err(Refusal::Changed) => {}
            Err(refusal) => return Err(refusal.status(resource, name)),
        }
    }
    Err(Status::modified(registry::subject(resource, name)))
}
