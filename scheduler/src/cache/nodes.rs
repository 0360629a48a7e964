//! Nodes as the API shows them, and what of that is news.

use super::Cache;
use crate::node_facts::NodeFacts;
use crate::node_info::NodeInfo;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

/// What a plugin may want to know of a node that was shown.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeNews {
    /// Most of what is shown: the node is alive.
    Nothing,
    Came(Arc<NodeFacts>),
    Changed {
        old: Arc<NodeFacts>,
        new: Arc<NodeFacts>,
    },
    /// Another node has the name by now.
    Replaced {
        old: Arc<NodeFacts>,
        new: Arc<NodeFacts>,
    },
}

impl Cache {
    pub fn set_node(&mut self, node: &Node) -> NodeNews {
        let Some(name) = node.metadata.name.as_deref() else {
            return NodeNews::Nothing;
        };
        let known = self.nodes.get(name);
        let name = known.map_or_else(|| name.into(), |info| Arc::clone(&info.name));
        let old = known.filter(|info| info.is_there);
        let old = old.map(|info| Arc::clone(&info.facts));
        self.set_images(&name, node);
        let new = self.common.facts(Arc::clone(&name), node);
        if old.as_deref() == Some(&new) {
            return NodeNews::Nothing;
        }
        let new = Arc::new(new);
        self.touch(&name).set_facts(Arc::clone(&new));
        match old {
            None => {
                self.shape += 1;
                NodeNews::Came(new)
            }
            Some(old) if old.uid == new.uid => NodeNews::Changed { old, new },
            Some(old) => NodeNews::Replaced { old, new },
        }
    }

    /// Pods of a removed node are still known until they are deleted. Gives back what was known of
    /// it.
    pub fn remove_node(&mut self, name: &str) -> Option<Arc<NodeFacts>> {
        let info = self.nodes.get(name).filter(|info| info.is_there)?;
        let (old, images) = (Arc::clone(&info.facts), Arc::clone(&info.images));
        if !images.is_empty() {
            Arc::make_mut(&mut self.images).remove(&images);
        }
        let info = self.touch(&old.name);
        info.forget_facts();
        if info.pods.is_empty() {
            self.drop_node(name);
        }
        self.shape += 1;
        Some(old)
    }

    pub fn node(&self, name: &str) -> Option<Arc<NodeFacts>> {
        let info = self.nodes.get(name).filter(|info| info.is_there)?;
        Some(Arc::clone(&info.facts))
    }

    pub fn node_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let there = self.nodes.values().filter(|info| info.is_there);
        there.map(|info| &info.name)
    }

    /// Snapshots share the images: they are written only where they are not what they were.
    fn set_images(&mut self, name: &Arc<str>, node: &Node) {
        let counted = self.nodes.get(name).map(|info| Arc::clone(&info.images));
        let counted = counted.unwrap_or_default();
        if self.images.are(&counted, node) {
            return;
        }
        let images = Arc::make_mut(&mut self.images);
        // In this order, so that an image that stays keeps its id.
        let now = images.add(node);
        images.remove(&counted);
        self.touch(name).images = now;
    }

    pub(super) fn touch(&mut self, name: &Arc<str>) -> &mut NodeInfo {
        self.generation += 1;
        let generation = self.generation;
        let info = self.nodes.entry(Arc::clone(name));
        let info = info.or_insert_with(|| NodeInfo::new(Arc::clone(name)));
        self.recent.remove(&info.generation);
        self.recent.insert(generation, Arc::clone(&info.name));
        info.generation = generation;
        info
    }

    pub(super) fn drop_node(&mut self, name: &str) {
        if let Some(info) = self.nodes.remove(name) {
            self.recent.remove(&info.generation);
        }
    }
}
