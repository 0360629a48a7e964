//! What is known of policies on the node's disk, for a start without the server. New rules are
//! written at once, pods and namespaces that come and go the less often the larger the file is.

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
    // What was to be written last was not.
    let mut is_owed = false;
    loop {
        let are_rules_new = !is_owed
            && tokio::select! {
                // What came before the stop is written too.
                biased;
                () = shared.new_rules.notified() => true,
                () = shared.news.notified() => false,
                () = stop.cancelled() => return,
            };
        let is_stopped = tokio::select! {
            biased;
            () = stop.cancelled() => true,
            () = shared.new_rules.notified(), if !are_rules_new => false,
            () = tokio::time::sleep(if are_rules_new { RULES_PAUSE } else { pause }) => false,
        };
        // Nothing whole is known to be kept before.
        if shared.source() < Source::Server {
            continue;
        }
        let (of, to) = (shared.clone(), path.clone());
        let written = tokio::task::spawn_blocking(move || {
            // Others wait for the state, and not for the disk.
            let json = of.read(as_json)?;
            packed_file::write_json(&to, &json)
        });
        let written = written.await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        is_owed = written.is_err();
        match written {
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

fn as_json(state: &State) -> io::Result<Vec<u8>> {
    let known = &state.known;
    let namespaces = known.namespaces.iter();
    let content = Shown {
        layout: LAYOUT,
        policies: known.policies.iter().collect(),
        namespaces: namespaces.map(|(name, labels)| (&**name, labels)).collect(),
        pods: known.pods.iter().collect(),
    };
    Ok(serde_json::to_vec(&content)?)
}

#[cfg(test)]
mod tests;
