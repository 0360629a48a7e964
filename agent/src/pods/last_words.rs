//! What a container wrote about its end: its termination message, or the tail of its log.

use super::context::Context;
use super::start::mounts;
use super::state;
use crate::runtime::ContainerStatus;
use k8s_openapi::api::core::v1::Pod;
use std::io::SeekFrom;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Upstream's bounds.
const MESSAGE_BYTES_MAX: u64 = 4096;
const LOG_LINES_MAX: usize = 80;
const LOG_BYTES_MAX: usize = 2048;
/// CRI lines are longer than what they hold; this is enough for the tail.
const LOG_READ_BYTES: u64 = 16 * 1024;

pub async fn read(context: &Context, pod: &Pod, container: &ContainerStatus) -> String {
    let config = &container.config;
    let directory = context.pod_directory(pod);
    let path = mounts::last_words(&directory, &config.name, config.attempt);
    let words = tail(&path, MESSAGE_BYTES_MAX).await;
    let known = state::find(state::spec(pod), &config.name);
    let policy = known.and_then(|known| known.termination_message_policy.clone());
    let falls_back =
        policy.as_deref() == Some("FallbackToLogsOnError") && container.exit_code != Some(0);
    if !words.is_empty() || !falls_back {
        return words;
    }
    from_log(&tail(&config.log_path, LOG_READ_BYTES).await)
}

/// The content of the last lines of a log in CRI format.
fn from_log(text: &str) -> String {
    let mut content = String::new();
    for line in text
        .lines()
        .rev()
        .take(LOG_LINES_MAX)
        .collect::<Vec<_>>()
        .iter()
        .rev()
    {
        let mut parts = line.splitn(4, ' ');
        let (tag, words) = (parts.nth(2), parts.next());
        let Some(words) = words else { continue };
        content.push_str(words);
        if tag != Some("P") {
            content.push('\n');
        }
    }
    let mut start = content.len().saturating_sub(LOG_BYTES_MAX);
    while !content.is_char_boundary(start) {
        start += 1;
    }
    content[start..].to_owned()
}

async fn tail(path: &Path, bytes_max: u64) -> String {
    let read = async {
        let mut file = tokio::fs::File::open(path).await?;
        let length = file.metadata().await?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))
            .await?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).await?;
        Ok::<_, std::io::Error>(bytes)
    };
    let bytes = read.await.unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
