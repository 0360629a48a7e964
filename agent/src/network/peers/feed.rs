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

type Nodes = BTreeMap<Box<str>, Peer>;

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Known {
    nodes: Arc<Mutex<Arc<Nodes>>>,
    version: watch::Sender<u64>,
    file: PathBuf,
}

impl Known {
    /// What the file has; nothing when there is none.
    pub fn open(file: PathBuf) -> Self {
        let nodes = read(&file).unwrap_or_default();
        Self {
            nodes: Arc::new(Mutex::new(Arc::new(nodes))),
            version: watch::Sender::new(0),
            file,
        }
    }

    pub fn nodes(&self) -> Arc<Nodes> {
        self.nodes.lock().clone()
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Tells of a change when there is one: most of what is heard of Nodes is their heartbeat.
    fn change(&self, change: impl FnOnce(&mut Nodes)) {
        let mut shared = self.nodes.lock();
        let mut nodes = Nodes::clone(&shared);
        change(&mut nodes);
        if nodes != **shared {
            *shared = Arc::new(nodes);
            drop(shared);
            self.version.send_modify(|version| *version += 1);
        }
    }

    fn set(&self, peer: Peer) {
        if self.nodes.lock().get(&peer.name) != Some(&peer) {
            self.change(|nodes| {
                nodes.insert(peer.name.clone(), peer);
            });
        }
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
            let nodes = self.nodes();
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
                self.known
                    .change(|nodes| nodes.retain(|name, _| listed.contains(name)));
            }
            Event::Apply(node) => self.known.set(Peer::of(&node)),
            Event::Delete(node) => {
                let name = node.metadata.name.unwrap_or_default();
                self.known.change(|nodes| {
                    nodes.remove(name.as_str());
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
