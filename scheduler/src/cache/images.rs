//! Which images nodes have, and how large they are: for image locality.
//!
//! Invariant: an image is known for as long as a node has it, and has one id meanwhile.

use k8s_openapi::api::core::v1::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// Stands for the name of an image.
pub type ImageId = u32;

/// How many nodes have an image, and how large it is in bytes by whom reported it first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSummary {
    pub nodes: usize,
    pub size: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Images {
    ids: HashMap<Arc<str>, ImageId>,
    /// By id.
    known: Vec<(Arc<str>, ImageSummary)>,
    /// Ids that stand for none.
    free: Vec<ImageId>,
}

impl Images {
    pub fn get(&self, name: &str) -> Option<(ImageId, ImageSummary)> {
        let id = *self.ids.get(name)?;
        Some((id, self.known[id as usize].1))
    }

    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = (ImageId, ImageSummary)> {
        self.ids
            .values()
            .map(|id| (*id, self.known[*id as usize].1))
    }

    #[cfg(test)]
    pub fn ids_given(&self) -> usize {
        self.known.len()
    }

    /// Whether what the node reports is what was counted of it.
    pub fn are(&self, counted: &[ImageId], node: &Node) -> bool {
        let ids = reported(node).map(|(name, _)| self.ids.get(name).copied());
        let ids: Option<Vec<ImageId>> = ids.collect();
        ids.is_some_and(|ids| *sorted(ids) == *counted)
    }

    /// Counts what a node reports.
    pub fn add(&mut self, node: &Node) -> Arc<[ImageId]> {
        let ids = reported(node).map(|(name, size)| self.id_of(name, size));
        let ids = sorted(ids.collect());
        for id in &ids {
            self.known[*id as usize].1.nodes += 1;
        }
        ids.into()
    }

    pub fn remove(&mut self, counted: &[ImageId]) {
        for id in counted {
            let (name, summary) = &mut self.known[*id as usize];
            summary.nodes -= 1;
            if summary.nodes == 0 {
                self.ids.remove(&std::mem::take(name));
                self.free.push(*id);
            }
        }
    }

    fn id_of(&mut self, name: &str, size: i64) -> ImageId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let known = (Arc::clone(&name), ImageSummary { nodes: 0, size });
        let id = match self.free.pop() {
            Some(id) => {
                self.known[id as usize] = known;
                id
            }
            None => {
                self.known.push(known);
                let last = self.known.len() - 1;
                ImageId::try_from(last).expect("nodes have fewer images than there are numbers")
            }
        };
        self.ids.insert(name, id);
        id
    }
}

fn sorted(mut ids: Vec<ImageId>) -> Vec<ImageId> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Names and sizes of the images that a node reports.
fn reported(node: &Node) -> impl Iterator<Item = (&str, i64)> {
    let reported = node
        .status
        .as_ref()
        .and_then(|status| status.images.as_ref());
    reported.into_iter().flatten().flat_map(|image| {
        let size = image.size_bytes.unwrap_or(0);
        let names = image.names.iter().flatten();
        names.map(move |name| (name.as_str(), size))
    })
}
