//! A node with the pods that are, or are assumed to be, on it.
//!
//! Invariants: `requested`, `scored`, `host_ports` and `alike` are the sums over `pods`.

use crate::cache::ImageId;
use crate::node_facts::NodeFacts;
use crate::pod_info::{HostPort, PodInfo, Traits};
use crate::resources::Resources;
use k8s_openapi::api::core::v1::Taint;
use std::sync::Arc;

/// Pods of a node that have the same traits.
#[derive(Clone, Debug)]
pub struct Alike {
    pub traits: Arc<Traits>,
    pub pods: i64,
    /// Those of them that are being deleted.
    pub leaving: i64,
}

impl Alike {
    fn count(&mut self, pod: &PodInfo, change: i64) {
        self.pods += change;
        if pod.is_deleting {
            self.leaving += change;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct NodeInfo {
    /// False while only pods of the node are known: such a node is never offered.
    pub is_there: bool,
    pub name: Arc<str>,
    pub facts: Arc<NodeFacts>,
    /// Sorted.
    pub images: Arc<[ImageId]>,
    pub requested: Resources,
    pub scored: Resources,
    pub pods: Vec<Arc<PodInfo>>,
    /// The same, counted by what they have in common.
    pub alike: Vec<Alike>,
    pub host_ports: Vec<HostPort>,
    /// Rises with every change in the cache; snapshots copy what is newer than they are.
    pub generation: u64,
}

impl NodeInfo {
    pub fn new(name: Arc<str>) -> Self {
        Self {
            facts: Arc::new(NodeFacts::named(&name)),
            name,
            ..Self::default()
        }
    }

    pub fn set_facts(&mut self, facts: Arc<NodeFacts>) {
        self.is_there = true;
        self.facts = facts;
    }

    /// Its pods are still known.
    pub fn forget_facts(&mut self) {
        self.is_there = false;
        self.facts = Arc::new(NodeFacts::named(&self.name));
        self.images = Arc::default();
    }

    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.requested.add(&pod.requests);
        self.scored.add(&pod.scored_on_node);
        self.host_ports.extend(pod.host_ports.iter().cloned());
        self.alike_of(&pod).count(&pod, 1);
        self.pods.push(pod);
    }

    pub fn remove_pod(&mut self, uid: &str) {
        let Some(index) = self.pods.iter().position(|pod| pod.uid == uid) else {
            return;
        };
        let pod = self.pods.swap_remove(index);
        self.requested.subtract(&pod.requests);
        self.scored.subtract(&pod.scored_on_node);
        self.alike_of(&pod).count(&pod, -1);
        self.alike.retain(|alike| alike.pods > 0);
        for port in &pod.host_ports {
            if let Some(index) = self.host_ports.iter().position(|known| known == port) {
                self.host_ports.swap_remove(index);
            }
        }
    }

    fn alike_of(&mut self, pod: &PodInfo) -> &mut Alike {
        let mut known = self.alike.iter();
        let place = known.position(|alike| Arc::ptr_eq(&alike.traits, &pod.traits));
        let place = place.unwrap_or_else(|| {
            self.alike.push(Alike {
                traits: Arc::clone(&pod.traits),
                pods: 0,
                leaving: 0,
            });
            self.alike.len() - 1
        });
        &mut self.alike[place]
    }

    pub fn taints(&self) -> &[Taint] {
        &self.facts.taints
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.facts.label(key)
    }
}

#[cfg(test)]
impl NodeInfo {
    /// Without pods.
    pub fn of(node: &k8s_openapi::api::core::v1::Node) -> Self {
        let facts = NodeFacts::of(node);
        let mut info = Self::new(Arc::clone(&facts.name));
        info.set_facts(facts);
        info
    }
}
