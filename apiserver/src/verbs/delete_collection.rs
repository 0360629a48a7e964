//! `DELETE` of a collection: each object that the selectors choose.

use super::asked::Asked;
use super::delete::{self, Deleted};
use crate::Api;
use crate::options::ListOptions;
use crate::registry;
use crate::respond::json_bytes;
use crate::tunnel::Body;
use coracle_api::object::Object;
use coracle_api::status::Status;
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub async fn delete_collection(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let list = ListOptions::parse(asked.resource, &asked.query, "")?;
    let options = delete::options(asked, request_body).await?;
    let snapshot = api.registry.snapshot(asked.resource);
    let prefix = registry::prefix(asked.namespace());
    let chosen: Vec<Object> = snapshot
        .range_from("", &prefix)
        .filter_map(|(_, entry)| registry::decode(asked.resource, &entry.value))
        .filter(|object| list.selection.matches(asked.resource, object))
        .take(list.limit.unwrap_or(usize::MAX))
        .collect();
    let mut items: Vec<Value> = Vec::with_capacity(chosen.len());
    for object in chosen {
        match delete::one(api, asked, object.name(), &options).await {
            Ok(Deleted::Gone(object) | Deleted::Ending(object)) => items.push(object.into_value()),
            // Somebody else was faster, which is as good.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let answer = json!({
        "kind": format!("{}List", asked.resource.kind),
        "apiVersion": asked.resource.api_version(),
        "metadata": { "resourceVersion": api.registry.store.revision().to_string() },
        "items": items,
    });
    Ok(json_bytes(StatusCode::OK, answer.to_string()))
}
