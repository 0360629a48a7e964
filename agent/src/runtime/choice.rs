//! Which runtime a node has: the one that is built in, or one at a socket.
//!
//! The choice is kept on disk. A node changes it only after it was wiped, since pods of the other
//! runtime would run on with nobody to look after them.

use super::cri::{self, CriRuntime};
use super::embedded::{self, EmbeddedRuntime};
use super::{Runtime, RuntimeError};
use crate::grpc::Endpoint;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a runtime beside the agent is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoints {
    pub runtime: Endpoint,
    /// Often the same.
    pub images: Endpoint,
}

fn mark(data_dir: &Path) -> PathBuf {
    data_dir.join("runtime-endpoint")
}

fn io_error(action: String) -> impl FnOnce(io::Error) -> RuntimeError {
    move |source| RuntimeError::Io { action, source }
}

/// None is the one that is built in.
pub async fn open(
    data_dir: &Path,
    chosen: Option<&Endpoints>,
) -> Result<Arc<dyn Runtime>, RuntimeError> {
    check(data_dir, chosen)?;
    let Some(chosen) = chosen else {
        return Ok(Arc::new(EmbeddedRuntime::open(embedded::Config::new(
            data_dir,
        ))?));
    };
    let made = fs::create_dir_all(data_dir)
        .and_then(|()| fs::set_permissions(data_dir, fs::Permissions::from_mode(0o700)));
    made.map_err(io_error(format!("cannot make {}", data_dir.display())))?;
    let runtime = CriRuntime::open(config(data_dir, chosen, cri::START_MAX)).await?;
    let mark = mark(data_dir);
    let text = format!("{}\n{}\n", chosen.runtime, chosen.images);
    if fs::read_to_string(&mark).ok().as_ref() != Some(&text) {
        let written = crate::atomic_file::write(&mark, text.as_bytes(), 0o644);
        written.map_err(io_error(format!("cannot write {}", mark.display())))?;
    }
    Ok(Arc::new(runtime))
}

fn config(data_dir: &Path, endpoints: &Endpoints, patience: Duration) -> cri::Config {
    cri::Config {
        data_dir: data_dir.to_owned(),
        runtime: endpoints.runtime.clone(),
        images: endpoints.images.clone(),
        patience,
    }
}

fn check(data_dir: &Path, chosen: Option<&Endpoints>) -> Result<(), RuntimeError> {
    let before = kept(data_dir)?;
    let has_own = fs::read_dir(data_dir.join("sandboxes"))
        .is_ok_and(|mut sandboxes| sandboxes.next().is_some());
    let refused = |other: &str| {
        Err(RuntimeError::Invalid(format!(
            "the pods of this node are with {other}: start it with that, or take them away with \
             `coracle wipe` first"
        )))
    };
    match (before, chosen) {
        (Some(before), None) => {
            refused(&format!("--container-runtime-endpoint {}", before.runtime))
        }
        (None, Some(_)) if has_own => refused("the runtime that is built in"),
        // A socket may have moved; what it leads to knows its pods.
        _ => Ok(()),
    }
}

fn kept(data_dir: &Path) -> Result<Option<Endpoints>, RuntimeError> {
    let path = mark(data_dir);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(format!("cannot read {}", path.display()))(error)),
    };
    let mut lines = text.lines().map(Endpoint::parse);
    match (lines.next(), lines.next()) {
        (Some(Ok(runtime)), Some(Ok(images))) => Ok(Some(Endpoints { runtime, images })),
        _ => Err(RuntimeError::Invalid(format!(
            "{} does not name a runtime",
            path.display()
        ))),
    }
}

/// Ends and removes what a node has in its runtime.
pub async fn wipe(data_dir: &Path) -> Result<(), RuntimeError> {
    if let Some(endpoints) = kept(data_dir)? {
        CriRuntime::open(config(data_dir, &endpoints, Duration::ZERO))
            .await?
            .wipe()
            .await?;
        let mark = mark(data_dir);
        let removed = fs::remove_file(&mark);
        removed.map_err(io_error(format!("cannot remove {}", mark.display())))?;
    }
    // Also what it had before, and to see that no agent runs.
    let own = EmbeddedRuntime::open(embedded::Config::new(data_dir))?;
    own.wipe().await
}

#[cfg(test)]
mod tests;
