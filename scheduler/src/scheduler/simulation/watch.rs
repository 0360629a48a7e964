//! What informers make of what they are shown: each event once and in order, but late; or a list.

use coracle_client::informer::Change;
use kube::Resource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the API shows of one object.
#[derive(Clone, Debug)]
pub enum Shown<K> {
    Set(Arc<K>),
    Gone(Arc<K>),
}

/// An informer of one kind.
#[derive(Debug)]
pub struct Watch<K> {
    pub store: BTreeMap<String, Arc<K>>,
    /// How many events of the log were seen.
    seen: usize,
}

impl<K> Default for Watch<K> {
    fn default() -> Self {
        Self {
            store: BTreeMap::new(),
            seen: 0,
        }
    }
}

pub fn name<K: Resource>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}

impl<K: Resource> Watch<K> {
    pub fn is_late(&self, log: &[Shown<K>]) -> bool {
        self.seen < log.len()
    }

    /// The next event of the log.
    pub fn next(&mut self, log: &[Shown<K>]) -> Vec<Change<K>> {
        let Some(event) = log.get(self.seen) else {
            return Vec::new();
        };
        self.seen += 1;
        match event {
            Shown::Set(object) => self.set(object),
            Shown::Gone(last) => {
                let known = self.store.remove(&name(last.as_ref()));
                known
                    .map(|_| Change::Deleted(Arc::clone(last)))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// What is not shown yet is lost, and made good by a list.
    pub fn list(&mut self, truth: &BTreeMap<String, Arc<K>>, log: &[Shown<K>]) -> Vec<Change<K>> {
        self.seen = log.len();
        let mut changes: Vec<Change<K>> = truth.values().flat_map(|one| self.set(one)).collect();
        let gone: BTreeSet<String> = self
            .store
            .keys()
            .filter(|name| !truth.contains_key(*name))
            .cloned()
            .collect();
        let gone = gone.iter().filter_map(|name| self.store.remove(name));
        changes.extend(gone.map(Change::Deleted));
        changes
    }

    /// The same once more, as a second chance and as a change that changes nothing.
    pub fn again(&self, at: usize) -> Vec<Change<K>> {
        let Some(known) = self.store.values().nth(at % self.store.len().max(1)) else {
            return Vec::new();
        };
        let [old, new] = [known, known].map(Arc::clone);
        vec![
            Change::Resync(Arc::clone(known)),
            Change::Updated { old, new },
        ]
    }

    fn set(&mut self, object: &Arc<K>) -> Vec<Change<K>> {
        let new = Arc::clone(object);
        let known = self.store.insert(name(object.as_ref()), Arc::clone(object));
        let Some(old) = known else {
            return vec![Change::Added(new)];
        };
        if old.meta().uid != new.meta().uid {
            return vec![Change::Deleted(old), Change::Added(new)];
        }
        if old.meta().resource_version == new.meta().resource_version {
            return Vec::new();
        }
        vec![Change::Updated { old, new }]
    }
}
