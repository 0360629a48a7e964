//! The world as the scheduler sees it: nodes, the pods on them, and pods assumed on a node before
//! their binding is confirmed.
//!
//! Invariants: a pod is on one node at most; an assumed pod stays until the API confirms it, it is
//! forgotten, or it expires after its binding was finished; what a snapshot shows does not change
//! while it is read; a pod that is on a node, or assumed there, was promised none. Holds no lock
//! across an await.

use crate::node_facts::Common;
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use coracle_api::object::ObjectKey;
use coracle_client::clock::Instant;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

mod budgets; // How many pods of an application may go.
mod images; // Which images nodes have.
mod nodes; // As the API shows them.
mod nominated; // Pods that were promised a node.
mod sizes; // How much it knows.
mod snapshot;

pub use budgets::{Budget, Budgets};
use images::Images;
pub use images::{ImageId, ImageSummary};
pub use nodes::NodeNews;
pub use nominated::Nominated;
pub use snapshot::Snapshot;

/// What a pod's coming to a node, or being promised one, changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The API shows, or must be told, something new.
    pub is_news: bool,
    /// There is room on another node, which was kept for the pod until now.
    pub gave_up: bool,
}

/// A binding that was answered is seen by the watch within this, or the pod is taken off again: a
/// server that was put back to an older state never shows it. Upstream waits for ever.
const ASSUMED_MAX: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
struct Placed {
    pod: Arc<PodInfo>,
    node: Arc<str>,
    /// Set while the pod is assumed: `None` until its binding is finished, then when it expires.
    assumed: Option<Option<Instant>>,
}

#[derive(Debug, Default)]
pub struct Cache {
    nodes: BTreeMap<Arc<str>, NodeInfo>,
    pods: HashMap<String, Placed>,
    /// The same nodes by their generation: who changed last is last.
    recent: BTreeMap<u64, Arc<str>>,
    /// Which nodes have an image, with its size: for image locality.
    images: Arc<Images>,
    common: Common,
    nominated: Nominated,
    budgets: Budgets,
    generation: u64,
    /// Rises when a node comes or goes, so that a snapshot knows when to look at all of them.
    shape: u64,
}

impl Cache {
    /// A pod that the API shows on a node. Confirms an assumed pod, or moves it where it really is.
    pub fn set_pod(&mut self, pod: Arc<PodInfo>) -> Settled {
        let node = pod.node_name().to_owned();
        let before = self.pods.get(&pod.uid);
        let is_news = before.is_none_or(|placed| placed.assumed.is_some());
        let was_elsewhere = before.is_some_and(|placed| *placed.node != *node);
        let gave_up = self.gives_up(&pod.uid, &node) || was_elsewhere;
        self.take_off(&pod.uid);
        self.nominated.forget(&pod.uid);
        self.place(pod, &node, None);
        Settled { is_news, gave_up }
    }

    /// Whether the pod was promised another node than this one.
    fn gives_up(&self, uid: &str, node: &str) -> bool {
        let promised = self.nominated.node_of(uid);
        promised.is_some_and(|promised| **promised != *node)
    }

    pub fn remove_pod(&mut self, uid: &str) {
        self.take_off(uid);
    }

    /// Counts the pod on the node from now on, ahead of the API. `None` where it is on a node
    /// already: the API may show it there since the cycle began, and knows better.
    pub fn assume(&mut self, pod: Arc<PodInfo>, node: &str) -> Option<Settled> {
        if self.contains(&pod.uid) {
            return None;
        }
        let gave_up = self.gives_up(&pod.uid, node);
        self.nominated.forget(&pod.uid);
        self.place(pod, node, Some(None));
        Some(Settled {
            is_news: true,
            gave_up,
        })
    }

    /// What the API shows of an assumed pod by now; false where it is none.
    pub fn update_assumed(&mut self, pod: &Arc<PodInfo>) -> bool {
        let Some(placed) = self.pods.get(&pod.uid) else {
            return false;
        };
        let (node, assumed) = (Arc::clone(&placed.node), placed.assumed);
        if assumed.is_some() {
            self.take_off(&pod.uid);
            self.place(Arc::clone(pod), &node, assumed);
        }
        assumed.is_some()
    }

    /// The binding of an assumed pod was answered: from now on the watch must confirm it in time.
    pub fn finish_binding(&mut self, uid: &str, now: Instant) {
        if let Some(placed) = self.pods.get_mut(uid)
            && placed.assumed.is_some()
        {
            placed.assumed = Some(Some(now + ASSUMED_MAX));
        }
    }

    /// Takes an assumed pod off its node. A pod that the API confirmed meanwhile stays.
    pub fn forget(&mut self, uid: &str) {
        if self.is_assumed(uid) {
            self.take_off(uid);
        }
    }

    /// A pod that waits for a node, as the API shows it. True when it gave up a node that it was
    /// promised.
    pub fn set_nominated(&mut self, pod: &Arc<PodInfo>) -> bool {
        self.nominated.set(pod)
    }

    /// Promises a waiting pod a node, or none any more.
    pub fn nominate(&mut self, pod: &Arc<PodInfo>, node: Option<&str>) -> Settled {
        if self.contains(&pod.uid) {
            return Settled::default();
        }
        Settled {
            gave_up: self.gives_up(&pod.uid, node.unwrap_or_default()),
            is_news: self.nominated.nominate(pod, node),
        }
    }

    /// True when the pod was promised a node.
    pub fn forget_nominated(&mut self, uid: &str) -> bool {
        self.nominated.forget(uid)
    }

    /// Pods that were promised the node and yield to one of `priority`.
    pub fn nominated_below(&self, node: &str, priority: i32) -> Vec<Arc<PodInfo>> {
        let pods = self.nominated.on(node).iter();
        pods.filter(|pod| pod.priority < priority)
            .cloned()
            .collect()
    }

    pub fn set_budget(&mut self, budget: &PodDisruptionBudget) {
        self.budgets.set(budget);
    }

    pub fn remove_budget(&mut self, key: &ObjectKey) {
        self.budgets.remove(key);
    }

    pub fn is_assumed(&self, uid: &str) -> bool {
        self.pods
            .get(uid)
            .is_some_and(|placed| placed.assumed.is_some())
    }

    /// Whether the pod is, or is assumed to be, on this node.
    pub fn is_on(&self, uid: &str, node: &str) -> bool {
        let placed = self.pods.get(uid);
        placed.is_some_and(|placed| *placed.node == *node)
    }

    pub fn contains(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// Takes off the assumed pods whose confirmation never came; gives back which.
    pub fn expire(&mut self, now: Instant) -> Vec<Arc<PodInfo>> {
        let is_over = |placed: &Placed| matches!(placed.assumed, Some(Some(end)) if end <= now);
        let mut over: Vec<Arc<PodInfo>> = self
            .pods
            .values()
            .filter(|placed| is_over(placed))
            .map(|placed| Arc::clone(&placed.pod))
            .collect();
        over.sort_by(|one, other| one.uid.cmp(&other.uid));
        for pod in &over {
            self.take_off(&pod.uid);
        }
        over
    }

    /// Brings a snapshot up to date: copies only what changed since it was last brought.
    pub fn update(&self, snapshot: &mut Snapshot) {
        snapshot.update(self);
        self.nominated.update(&mut snapshot.nominated);
        snapshot.budgets.clone_from(&self.budgets);
    }

    fn place(&mut self, pod: Arc<PodInfo>, node: &str, assumed: Option<Option<Instant>>) {
        let known = self.nodes.get(node);
        let node = known.map_or_else(|| node.into(), |info| Arc::clone(&info.name));
        self.touch(&node).add_pod(Arc::clone(&pod));
        self.pods
            .insert(pod.uid.clone(), Placed { pod, node, assumed });
    }

    fn take_off(&mut self, uid: &str) {
        let Some(placed) = self.pods.remove(uid) else {
            return;
        };
        let info = self.touch(&placed.node);
        info.remove_pod(uid);
        if !info.is_there && info.pods.is_empty() {
            self.drop_node(&placed.node);
        }
    }
}

#[cfg(test)]
mod audit; // What a test may ask of all of it.
#[cfg(test)]
mod tests;
