//! What is known of Nodes: followed from the server, and kept on disk as it changes.

use super::record::Peer;
use crate::atomic_file;
use coracle_client::Client;
use coracle_client::informer::{self, Event, Filter, Sink};
use k8s_openapi::api::core::v1::Node;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Between two writes of the file: a cluster that starts changes much at once.
const PAUSE: Duration = Duration::from_secs(5);

pub type Nodes = BTreeMap<Box<str>, Peer>;

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Known {
    state: Arc<Mutex<State>>,
    version: watch::Sender<u64>,
    file: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    nodes: Arc<Nodes>,
    /// They were all of them at some time: on disk, or in a list.
    is_whole: bool,
}

impl Known {
    /// What the file has; nothing is known when there is none.
    pub fn open(file: PathBuf) -> Self {
        let kept = read(&file);
        let state = State {
            is_whole: kept.is_some(),
            nodes: Arc::new(kept.unwrap_or_default()),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            version: watch::Sender::new(0),
            file,
        }
    }

    /// None before the first whole list: no nodes are known, not known to be none.
    pub fn nodes(&self) -> Option<Arc<Nodes>> {
        let state = self.state.lock();
        state.is_whole.then(|| state.nodes.clone())
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells of a change when `change` says that it made one: most of what is heard of Nodes is
    /// their heartbeat.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        if change(&mut self.state.lock()) {
            self.version.send_modify(|version| *version += 1);
        }
    }

    fn set(&self, peer: Peer) {
        self.change(|state| {
            let is_new = state.nodes.get(&peer.name) != Some(&peer);
            if is_new {
                Arc::make_mut(&mut state.nodes).insert(peer.name.clone(), peer);
            }
            is_new
        });
    }

    fn remove(&self, name: &str) {
        self.change(|state| {
            let is_there = state.nodes.contains_key(name);
            if is_there {
                Arc::make_mut(&mut state.nodes).remove(name);
            }
            is_there
        });
    }

    /// These are all.
    fn keep_listed(&self, listed: &BTreeSet<Box<str>>) {
        self.change(|state| {
            let is_first = !std::mem::replace(&mut state.is_whole, true);
            let has_others = state.nodes.keys().any(|name| !listed.contains(name));
            if has_others {
                Arc::make_mut(&mut state.nodes).retain(|name, _| listed.contains(name));
            }
            is_first || has_others
        });
    }

    /// Runs until `stop`.
    pub async fn follow(self, client: Client, stop: CancellationToken) {
        let sink = Listed {
            known: self.clone(),
            names: BTreeSet::new(),
        };
        let following = informer::follow::<Node>(client, Filter::default(), sink, stop.clone());
        tokio::join!(following, self.keep(stop));
    }

    async fn keep(&self, stop: CancellationToken) {
        let mut versions = self.subscribe();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = versions.changed() => if changed.is_err() { return },
            }
            let Some(nodes) = self.nodes() else { continue };
            let written = serde_json::to_vec(&nodes.values().collect::<Vec<_>>());
            let written = written.map_err(std::io::Error::other);
            let written = written.and_then(|bytes| atomic_file::write(&self.file, &bytes, 0o644));
            if let Err(error) = written {
                tracing::warn!(%error, "nodes are not kept for a start without the server");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }
}

/// A damaged file is as none: the server tells again.
fn read(file: &Path) -> Option<Nodes> {
    let bytes = std::fs::read(file).ok()?;
    let peers: Vec<Peer> = match serde_json::from_slice(&bytes) {
        Ok(peers) => peers,
        Err(error) => {
            tracing::warn!(%error, "the nodes that were kept are forgotten");
            return None;
        }
    };
    Some(
        peers
            .into_iter()
            .map(|peer| (peer.name.clone(), peer))
            .collect(),
    )
}

struct Listed {
    known: Known,
    names: BTreeSet<Box<str>>,
}

impl Sink<Node> for Listed {
    fn apply(&mut self, event: Event<Node>) {
        match event {
            Event::Init => self.names.clear(),
            Event::InitApply(node) => {
                let peer = Peer::of(&node);
                self.names.insert(peer.name.clone());
                self.known.set(peer);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.names);
                self.known.keep_listed(&listed);
            }
            Event::Apply(node) => self.known.set(Peer::of(&node)),
            Event::Delete(node) => {
                let name = node.metadata.name.unwrap_or_default();
                self.known.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
