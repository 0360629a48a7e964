//! `POST /coracle/v1/secrets/rotate`: new keys for what is sealed, by whoever may post there.

use super::{AtRest, RotateError};
use crate::respond;
use crate::tunnel::Body;
use coracle_api::status::Status;
use coracle_store::Store;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde_json::json;
use std::sync::Arc;

pub(crate) const ROTATE_PATH: &str = "/coracle/v1/secrets/rotate";

/// Goes on to the end whether or not the client waits for it.
pub(crate) async fn rotate(
    at_rest: Option<Arc<AtRest>>,
    store: Store,
) -> Result<Response<Body>, Status> {
    let Some(at_rest) = at_rest else {
        return Err(Status::bad_request(
            "the store of this server is not encrypted",
        ));
    };
    let file = at_rest.file().display().to_string();
    let work = tokio::spawn(async move {
        let rotated = at_rest.rotate(&store).await;
        match &rotated {
            Ok(done) => tracing::info!(records = done.records, "secrets have a new key"),
            Err(error) => tracing::error!(%error, "secrets were not rotated"),
        }
        rotated
    });
    let done = match work.await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => return Err(refused(&error)),
        Err(panic) => return Err(Status::internal(panic)),
    };
    let answer = json!({
        "keyFile": file, "records": done.records, "snapshots": done.snapshots,
    });
    let mut response = Response::new(respond::full(answer.to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

fn refused(error: &RotateError) -> Status {
    match error {
        RotateError::Configured(_) => Status::bad_request(error.to_string()),
        RotateError::UnderWay => Status::too_many_requests(error.to_string(), 1),
        other => Status::internal(other),
    }
}
