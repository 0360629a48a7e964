//! Which images nodes have, and how large they are: for image locality.

use k8s_openapi::api::core::v1::Node;
use std::collections::HashMap;
use std::sync::Arc;

/// How many nodes have an image, and how large it is in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSummary {
    pub nodes: usize,
    pub size: i64,
}

#[derive(Debug, Default)]
pub struct Images {
    by_name: HashMap<Arc<str>, ImageSummary>,
    /// Rises with every change; snapshots copy what is newer than they are.
    version: u64,
}

impl Images {
    pub fn get(&self, name: &str) -> Option<ImageSummary> {
        self.by_name.get(name).copied()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Counts those of `new` in place of those of `old`.
    pub fn replace(&mut self, old: Option<&Node>, new: Option<&Node>) {
        if reported(old).eq(reported(new)) {
            return;
        }
        self.version += 1;
        for (name, _) in reported(old) {
            if let Some(summary) = self.by_name.get_mut(name) {
                summary.nodes -= 1;
                if summary.nodes == 0 {
                    self.by_name.remove(name);
                }
            }
        }
        for (name, size) in reported(new) {
            let summary = self.by_name.entry(name.into()).or_default();
            summary.nodes += 1;
            summary.size = size;
        }
    }

    /// Brings a copy up to date.
    pub fn update(&self, copy: &mut Self) {
        if copy.version != self.version {
            copy.by_name.clone_from(&self.by_name);
            copy.version = self.version;
        }
    }
}

/// Names and sizes of the images that a node reports.
fn reported(node: Option<&Node>) -> impl Iterator<Item = (&str, i64)> {
    let reported = node.and_then(|node| node.status.as_ref()?.images.as_ref());
    reported.into_iter().flatten().flat_map(|image| {
        let size = image.size_bytes.unwrap_or(0);
        let names = image.names.iter().flatten();
        names.map(move |name| (name.as_str(), size))
    })
}
