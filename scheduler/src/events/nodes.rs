//! Nodes as they come from the server. Only what the scheduler needs of each is kept, by the cache.

use super::first_list::listed;
use super::{World, guarded};
use crate::cache::NodeNews;
use crate::framework::WorldChange;
use coracle_client::clock::Instant;
use coracle_client::informer::{Event, Filter, Informers, Sink};
use k8s_openapi::api::core::v1::Node;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Keeps the world's nodes from now on. What it gives back waits for their first list; false when
/// stopped before.
pub fn keep(
    world: &World,
    informers: &Informers,
    stop: &CancellationToken,
) -> impl Future<Output = bool> + use<> {
    let (synced, mut is_synced) = watch::channel(false);
    let sink = Nodes::new(world.clone(), synced);
    let (informers, stop) = (informers.clone(), stop.clone());
    tokio::spawn(async move { informers.follow(Filter::default(), sink, stop).await });
    listed::<Node>(async move { is_synced.wait_for(|is_synced| *is_synced).await.is_ok() })
}

pub struct Nodes {
    world: World,
    /// What the list under way has shown so far; the rest is gone when it is complete.
    listed: HashSet<String>,
    synced: watch::Sender<bool>,
}

impl Nodes {
    pub fn new(world: World, synced: watch::Sender<bool>) -> Self {
        Self {
            world,
            listed: HashSet::new(),
            synced,
        }
    }

    fn set(&self, node: &Node) {
        guarded("Node", name(node), || {
            let news = self.world.views.cache.lock().set_node(node);
            match news {
                NodeNews::Nothing => {}
                NodeNews::Came(new) => self.tell(WorldChange::NodeAdded(new)),
                NodeNews::Changed { old, new } => self.tell(WorldChange::NodeUpdated { old, new }),
                NodeNews::Replaced { old, new } => {
                    self.tell(WorldChange::NodeRemoved(old));
                    self.tell(WorldChange::NodeAdded(new));
                }
            }
        });
    }

    fn gone(&self, name: &str) {
        guarded("Node", name, || {
            let gone = self.world.views.cache.lock().remove_node(name);
            if let Some(gone) = gone {
                self.tell(WorldChange::NodeRemoved(gone));
            }
        });
    }

    fn tell(&self, change: WorldChange) {
        self.world.queue.world_changed(change, Instant::now());
    }

    fn not_listed(&mut self) -> Vec<Arc<str>> {
        let listed = std::mem::take(&mut self.listed);
        let cache = self.world.views.cache.lock();
        let known = cache.node_names();
        let gone = known.filter(|name| !listed.contains(&***name));
        gone.cloned().collect()
    }
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

impl Sink<Node> for Nodes {
    fn apply(&mut self, event: Event<Node>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(node) => {
                self.set(&node);
                self.listed.insert(name(&node).to_owned());
            }
            Event::InitDone => {
                for name in self.not_listed() {
                    self.gone(&name);
                }
                self.synced.send_replace(true);
            }
            Event::Apply(node) => self.set(&node),
            Event::Delete(node) => self.gone(name(&node)),
        }
    }
}

#[cfg(test)]
mod tests;
