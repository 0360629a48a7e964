//! Keeps the logs of running containers small: a file that has grown is set aside and a new one
//! begun; the oldest ones go.

use super::context::Context;
use crate::LogBounds;
use crate::runtime::ContainerState;
use jiff::Timestamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const LOOK_EVERY: Duration = Duration::from_secs(10);

pub async fn run(context: Arc<Context>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let Ok(containers) = context.runtime.list_containers().await else {
            continue;
        };
        for container in containers {
            let path = &container.config.log_path;
            let is_running = container.state == ContainerState::Running;
            let size = fs::metadata(path).map_or(0, |meta| meta.len());
            if !is_running || size <= context.logs.bytes_max {
                continue;
            }
            let old = match set_aside(path, context.logs, context.clock.now()) {
                Ok(old) => old,
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot rotate a log");
                    continue;
                }
            };
            if let Err(error) = context.runtime.reopen_log(&container.id).await {
                tracing::warn!(path = %path.display(), %error, "a log is not begun anew");
                // The container still writes to it.
                let _ = fs::rename(&old, path);
            }
        }
    }
}

/// Gives the file another name, and removes the oldest of those that have one.
fn set_aside(path: &Path, bounds: LogBounds, now: Timestamp) -> io::Result<PathBuf> {
    let mut old = rotated(path)?;
    old.sort();
    let surplus = (old.len() + 2).saturating_sub(bounds.files_max);
    for file in old.iter().take(surplus) {
        fs::remove_file(file)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", now.strftime("%Y%m%d-%H%M%S")));
    let name = PathBuf::from(name);
    fs::rename(path, &name)?;
    Ok(name)
}

/// Removes a log with all that was set aside of it; what does not go now goes with the pod.
pub fn remove(path: &Path) {
    for file in rotated(path).into_iter().flatten() {
        let _ = fs::remove_file(file);
    }
    let _ = fs::remove_file(path);
}

/// The files of a log that were set aside.
fn rotated(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some((directory, name)) = path.parent().zip(path.file_name()) else {
        return Ok(Vec::new());
    };
    let mut prefix = name.to_os_string();
    prefix.push(".");
    let prefix = prefix.to_string_lossy().into_owned();
    let entries = fs::read_dir(directory)?.flatten();
    Ok(entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect())
}

#[cfg(test)]
mod tests;
