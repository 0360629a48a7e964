//! How much the cache knows, for who reads metrics.

use super::Cache;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub nodes: usize,
    pub pods: usize,
    /// Ahead of the API.
    pub assumed_pods: usize,
}

impl Cache {
    /// Looks at every pod.
    pub fn sizes(&self) -> Sizes {
        let assumed = self.pods.values().filter(|placed| placed.assumed.is_some());
        Sizes {
            nodes: self.nodes.len(),
            pods: self.pods.len(),
            assumed_pods: assumed.count(),
        }
    }
}
