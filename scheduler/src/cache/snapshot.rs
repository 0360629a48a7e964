//! A stable view of the cache for one scheduling cycle.

use super::{Budgets, Cache, ImageId, ImageSummary, Images, Nominated};
use crate::node_info::NodeInfo;
use std::sync::Arc;

/// Nodes in order of name, without those that have no Node object.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub nodes: Vec<NodeInfo>,
    pub nominated: Nominated,
    pub budgets: Budgets,
    images: Arc<Images>,
    generation: u64,
    shape: u64,
}

impl Snapshot {
    pub(super) fn update(&mut self, cache: &Cache) {
        if self.shape == cache.shape {
            self.refresh(cache);
        } else {
            let real = cache.nodes.values().filter(|info| info.is_there);
            self.nodes = real.cloned().collect();
            self.shape = cache.shape;
        }
        self.generation = cache.generation;
        self.images = Arc::clone(&cache.images);
    }

    /// Same nodes as before: only those that changed since are copied.
    fn refresh(&mut self, cache: &Cache) {
        for name in cache
            .recent
            .range(self.generation + 1..)
            .map(|(_, name)| name)
        {
            if let Some(place) = self.place_of(name)
                && let Some(theirs) = cache.nodes.get(name)
            {
                self.nodes[place].clone_from(theirs);
            }
        }
    }

    /// The place of a node in `nodes`.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let found = self.nodes.binary_search_by(|node| (*node.name).cmp(name));
        found.ok()
    }

    pub fn image(&self, name: &str) -> Option<(ImageId, ImageSummary)> {
        self.images.get(name)
    }
}
