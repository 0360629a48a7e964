//! What is known of policies on the node's disk, for a start without the server. New rules are
//! written at once, pods that come and go the less often the larger the file is.

use super::labels::Labels;
use super::record::{Key, Pod, Policy};
use super::shared::{Shared, Source};
use super::state::State;
use crate::packed_file::{self, PAUSE_MAX, PAUSE_MIN, pause_after};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Of another layout nothing is read.
const LAYOUT: u32 = 1;
/// Rules that come together are written together.
const RULES_PAUSE: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
struct Content {
    layout: u32,
    policies: Vec<(Key, Policy)>,
    namespaces: Vec<(Box<str>, Labels)>,
    pods: Vec<(Key, Pod)>,
}

#[derive(Serialize)]
struct Shown<'a> {
    layout: u32,
    policies: Vec<(&'a Key, &'a Policy)>,
    namespaces: Vec<(&'a str, &'a Labels)>,
    pods: Vec<(&'a Key, &'a Pod)>,
}

/// A file that is not there, or cannot be trusted, leaves nothing.
pub fn open(path: &Path) -> (State, Source) {
    let mut state = State::default();
    match load(path) {
        Ok(None) => return (state, Source::Nothing),
        Ok(Some(content)) => fill(&mut state, content),
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, %error, "the NetworkPolicies known last are lost until the server tells");
            return (state, Source::Nothing);
        }
    }
    (state, Source::Disk)
}

fn load(path: &Path) -> io::Result<Option<Content>> {
    let content: Option<Content> = packed_file::read(path)?;
    match content {
        Some(content) if content.layout != LAYOUT => {
            Err(io::Error::other("the file is of another version"))
        }
        content => Ok(content),
    }
}

fn fill(state: &mut State, content: Content) {
    for (key, policy) in content.policies {
        state.set_policy(&key, Some(policy));
    }
    for (name, labels) in content.namespaces {
        state.set_namespace(&name, Some(labels));
    }
    for (key, pod) in content.pods {
        state.set_pod(&key, Some(pod));
    }
}

/// Until `stop`; what changed last is written then too.
pub async fn run(shared: Arc<Shared>, path: PathBuf, stop: CancellationToken) {
    let mut pause = PAUSE_MIN;
    loop {
        let wait = tokio::select! {
            () = stop.cancelled() => return,
            () = shared.new_rules.notified() => RULES_PAUSE,
            () = shared.news.notified() => pause,
        };
        let soon = async {
            if wait == RULES_PAUSE {
                std::future::pending::<()>().await;
            }
            shared.new_rules.notified().await;
        };
        let is_stopped = tokio::select! {
            () = stop.cancelled() => true,
            () = tokio::time::sleep(wait) => false,
            () = soon => false,
        };
        // Nothing whole is known to be kept before.
        if shared.source() < Source::Server {
            continue;
        }
        let (of, to) = (shared.clone(), path.clone());
        let written = tokio::task::spawn_blocking(move || of.read(|state| write(state, &to)));
        match written
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
        {
            Ok(bytes) => pause = pause_after(bytes),
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "NetworkPolicies are not kept for a start without the server");
                pause = PAUSE_MAX;
            }
        }
        if is_stopped {
            return;
        }
    }
}

/// The bytes written.
fn write(state: &State, path: &Path) -> io::Result<u64> {
    let known = &state.known;
    let namespaces = known.namespaces.iter();
    let content = Shown {
        layout: LAYOUT,
        policies: known.policies.iter().collect(),
        namespaces: namespaces.map(|(name, labels)| (&**name, labels)).collect(),
        pods: known.pods.iter().collect(),
    };
    packed_file::write(path, &content)
}

#[cfg(test)]
mod tests;
