//! Pods that were promised a node, where they wait for room that is being made for them.
//!
//! What the scheduler decided stands until the API shows another node than it did when last
//! looked at: an update that was on its way meanwhile takes nothing back.
//!
//! Invariants: a pod is promised one node at most; `on` and `node_of` say the same.

use crate::pod_info::PodInfo;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Entry {
    pod: Arc<PodInfo>,
    node: Option<Arc<str>>,
    /// `status.nominatedNodeName` as last seen.
    shown: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default)]
pub struct Nominated {
    /// By uid. One with neither node is not kept.
    entries: HashMap<String, Entry>,
    by_node: HashMap<Arc<str>, Vec<Arc<PodInfo>>>,
    /// Rises with every change; snapshots copy what is newer than they are.
    version: u64,
}

/// What `status.nominatedNodeName` of a pod says.
fn shown(pod: &PodInfo) -> Option<Arc<str>> {
    let name = pod
        .waiting
        .as_ref()?
        .status
        .as_ref()?
        .nominated_node_name
        .as_deref()?;
    (!name.is_empty()).then(|| name.into())
}

impl Nominated {
    /// The pods that were promised the node.
    pub fn on(&self, node: &str) -> &[Arc<PodInfo>] {
        self.by_node.get(node).map_or(&[], Vec::as_slice)
    }

    /// The node that the pod was promised.
    pub fn node_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.entries.get(uid)?.node.as_ref()
    }

    /// Takes over what the API shows. True when the pod had a node that it has no longer.
    pub(super) fn set(&mut self, pod: &Arc<PodInfo>) -> bool {
        let shown = shown(pod);
        let known = self.entries.get(&pod.uid);
        if known.is_none() && shown.is_none() {
            return false;
        }
        let before = known.and_then(|known| known.node.clone());
        let node = match known {
            Some(known) if known.shown == shown => before.clone(),
            _ => shown.clone(),
        };
        let is_released = before.is_some() && before != node;
        self.put(pod, node, shown);
        is_released
    }

    /// Promises the pod a node ahead of the API, or takes the promise back. True when the API
    /// must be told.
    pub(super) fn nominate(&mut self, pod: &Arc<PodInfo>, node: Option<&str>) -> bool {
        let known = self.entries.get(&pod.uid);
        let before = known.and_then(|known| known.node.clone());
        let shown = known.map_or_else(|| shown(pod), |known| known.shown.clone());
        let is_news = before.as_deref() != node || shown.as_deref() != node;
        if is_news {
            self.put(pod, node.map(Arc::from), shown);
        }
        is_news
    }

    pub(super) fn forget(&mut self, uid: &str) -> bool {
        let Some(entry) = self.entries.remove(uid) else {
            return false;
        };
        self.version += 1;
        self.unlink(&entry);
        entry.node.is_some()
    }

    /// Brings a copy up to date.
    pub(super) fn update(&self, copy: &mut Self) {
        if copy.version != self.version {
            copy.clone_from(self);
        }
    }

    fn put(&mut self, pod: &Arc<PodInfo>, node: Option<Arc<str>>, shown: Option<Arc<str>>) {
        self.forget(&pod.uid);
        self.version += 1;
        if let Some(node) = &node {
            let on_node = self.by_node.entry(Arc::clone(node)).or_default();
            on_node.push(Arc::clone(pod));
        }
        if node.is_some() || shown.is_some() {
            let pod = Arc::clone(pod);
            let uid = pod.uid.clone();
            self.entries.insert(uid, Entry { pod, node, shown });
        }
    }

    #[cfg(test)]
    pub(super) fn promises(&self) -> Vec<String> {
        let entries = self.entries.iter();
        let promised = entries.filter_map(|(uid, entry)| Some((uid, entry.node.as_ref()?)));
        let mut promised: Vec<String> = promised
            .map(|(uid, node)| format!("{uid} for {node}"))
            .collect();
        promised.sort();
        promised
    }

    fn unlink(&mut self, entry: &Entry) {
        let Some(node) = &entry.node else {
            return;
        };
        if let Some(pods) = self.by_node.get_mut(node) {
            pods.retain(|pod| pod.uid != entry.pod.uid);
            if pods.is_empty() {
                self.by_node.remove(node);
            }
        }
    }
}

#[cfg(test)]
mod tests;
