//! Whether the cache agrees with itself, for tests.

use super::Cache;
use crate::node_info::NodeInfo;
use crate::resources::Resources;

impl Cache {
    /// `uid on node`, with ` assumed` after it where it is, in order; complains of what contradicts
    /// itself.
    pub fn audit(&self) -> Result<Vec<String>, String> {
        let mut on_nodes = 0;
        for (name, info) in &self.nodes {
            let mut sum = Resources::default();
            for pod in &info.pods {
                sum.add(&pod.requests);
                if !self.is_on(&pod.uid, name) {
                    return Err(format!("{name} has {}, which is elsewhere", pod.uid));
                }
            }
            on_nodes += info.pods.len();
            if info.requested != sum {
                return Err(format!("{name} has {sum:?} and says {:?}", info.requested));
            }
            if !info.is_there && info.pods.is_empty() {
                return Err(format!("{name} is gone and empty, and kept"));
            }
        }
        for (id, summary) in self.images.all() {
            let has = |info: &&NodeInfo| info.images.binary_search(&id).is_ok();
            let nodes = self.nodes.values().filter(has).count();
            if nodes != summary.nodes || nodes == 0 {
                return Err(format!("{nodes} nodes have an image: {summary:?}"));
            }
        }
        if on_nodes != self.pods.len() {
            return Err(format!(
                "{on_nodes} pods on nodes, {} in all",
                self.pods.len()
            ));
        }
        let mut pods: Vec<String> = Vec::new();
        for (uid, placed) in &self.pods {
            let assumed = placed.assumed.map_or("", |_| " assumed");
            pods.push(format!("{uid} on {}{assumed}", placed.node));
            if self.nominated.node_of(uid).is_some() {
                return Err(format!("{uid} is on a node, and promised one"));
            }
        }
        pods.sort();
        Ok(pods)
    }

    /// `uid for node` of the pods that were promised one, in order.
    pub fn promises(&self) -> Vec<String> {
        self.nominated.promises()
    }
}
