//! `DELETE /localvolumes/NAME`: the directory of a volume that is being deleted goes.

use super::answer::{Body, refuse};
use super::serve::Server;
use crate::error::chain;
use crate::local_path::{self, RemoveError};
use http::{Response, StatusCode};
use std::sync::Arc;

/// One at a time: a second one that is asked for meanwhile waits, and then finds nothing to do.
pub async fn remove(server: &Server, name: String) -> Response<Body> {
    let directories = &server.stats.context.local_path;
    let turn = Arc::clone(&directories.removals).lock_owned().await;
    let all = directories.all.clone();
    let work = tokio::task::spawn_blocking(move || {
        // The work goes on when nobody waits for the answer any more.
        let _turn = turn;
        local_path::remove(all.as_deref(), &name)
    });
    let error = match work.await {
        Ok(Ok(())) => return refuse(StatusCode::OK, ""),
        Ok(Err(error)) => error,
        Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let code = match error {
        RemoveError::Name(_) => StatusCode::BAD_REQUEST,
        RemoveError::NoPlace => StatusCode::NOT_FOUND,
        RemoveError::Mounted(_) => StatusCode::CONFLICT,
        RemoveError::Disk { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    refuse(code, chain(&error))
}
