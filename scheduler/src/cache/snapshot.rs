//! A stable view of the cache for one scheduling cycle.

use super::{Budgets, Nominated};
use crate::node_info::NodeInfo;
use k8s_openapi::api::core::v1::Node;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How many nodes have an image, and how large it is in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSummary {
    pub nodes: usize,
    pub size: i64,
}

/// Nodes in order of name, without those that have no Node object.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub nodes: Vec<NodeInfo>,
    pub nominated: Nominated,
    pub budgets: Budgets,
    images: HashMap<Arc<str>, ImageSummary>,
    generation: u64,
    shape: u64,
}

impl Snapshot {
    pub(super) fn update(
        &mut self,
        nodes: &BTreeMap<Arc<str>, NodeInfo>,
        images: &HashMap<Arc<str>, ImageSummary>,
        generation: u64,
        shape: u64,
    ) {
        if self.shape == shape {
            self.refresh(nodes);
        } else {
            let real = nodes.values().filter(|info| info.node.is_some());
            self.nodes = real.cloned().collect();
            self.shape = shape;
        }
        if self.generation != generation && self.images != *images {
            self.images.clone_from(images);
        }
        self.generation = generation;
    }

    /// Same nodes as before: only those that changed since are copied.
    fn refresh(&mut self, nodes: &BTreeMap<Arc<str>, NodeInfo>) {
        for mine in &mut self.nodes {
            if let Some(theirs) = nodes.get(&mine.name)
                && theirs.generation != mine.generation
            {
                mine.clone_from(theirs);
            }
        }
    }

    /// The place of a node in `nodes`.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        let found = self.nodes.binary_search_by(|node| (*node.name).cmp(name));
        found.ok()
    }

    pub fn image(&self, name: &str) -> Option<ImageSummary> {
        self.images.get(name).copied()
    }
}

/// Names and sizes of the images that a node reports.
pub(super) fn images(node: Option<&Node>) -> impl Iterator<Item = (&str, i64)> {
    let reported = node.and_then(|node| node.status.as_ref()?.images.as_ref());
    reported.into_iter().flatten().flat_map(|image| {
        let size = image.size_bytes.unwrap_or(0);
        image
            .names
            .iter()
            .flatten()
            .map(move |name| (name.as_str(), size))
    })
}
