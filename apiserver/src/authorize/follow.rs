//! Keeps the authorizer's indexes in step with the store.
//!
//! `load` puts the newest state in, before the first request; `follow` applies what changes from
//! there on. Whoever is told that a write was done may find the index a moment behind, as with
//! upstream's caches.

use super::{Authorizer, FOLLOWED};
use crate::view::{decode, partition};
use coracle_api::object::ObjectKey;
use coracle_store::{Event, EventKind, Revision, Store, WatchClosed};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What stored pods that have a node have, and few others.
const NODE_NAME: &str = "\"nodeName\":";

/// One followed resource and how far it is applied.
#[derive(Debug)]
pub struct Followed {
    group: &'static str,
    plural: &'static str,
    applied: Revision,
    /// What was put in.
    keys: BTreeSet<Arc<str>>,
}

/// Fills the indexes from the newest snapshots.
pub fn load(store: &Store, authorizer: &Authorizer) -> Vec<Followed> {
    FOLLOWED
        .iter()
        .map(|(group, plural)| {
            let mut followed = Followed {
                group,
                plural,
                applied: Revision(0),
                keys: BTreeSet::new(),
            };
            followed.reload(store, authorizer);
            followed
        })
        .collect()
}

/// Applies changes until shutdown or until the store closes.
pub async fn follow(
    store: Store,
    authorizer: Arc<Authorizer>,
    loaded: Vec<Followed>,
    shutdown: CancellationToken,
) {
    let mut tasks = JoinSet::new();
    for followed in loaded {
        tasks.spawn(followed.run(store.clone(), Arc::clone(&authorizer)));
    }
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = async { while tasks.join_next().await.is_some() {} } => {}
    }
}

impl Followed {
    async fn run(mut self, store: Store, authorizer: Arc<Authorizer>) {
        loop {
            match self.watch(&store, &authorizer).await {
                Some(WatchClosed::StoreClosed) => return,
                Some(error) => tracing::warn!(
                    plural = self.plural,
                    %error,
                    "lost track of what authorization depends on, reading all of it"
                ),
                // Compacted before the watch began.
                None => {}
            }
            self.reload(&store, &authorizer);
        }
    }

    /// Returns why the watch ended, or nothing when it could not begin.
    async fn watch(&mut self, store: &Store, authorizer: &Authorizer) -> Option<WatchClosed> {
        let partition = partition(self.group, self.plural);
        let mut watch = store.watch(&partition, self.applied).ok()?;
        loop {
            match watch.next().await {
                Ok(event) => self.apply(authorizer, &event),
                Err(closed) => return Some(closed),
            }
        }
    }

    fn apply(&mut self, authorizer: &Authorizer, event: &Event) {
        if event.kind == EventKind::Deleted {
            self.forget(authorizer, &event.key);
        } else {
            self.set(authorizer, &event.key, &event.value);
        }
        self.applied = event.revision;
    }

    fn set(&mut self, authorizer: &Authorizer, key: &Arc<str>, value: &[u8]) {
        if !self.leads_somewhere(value) {
            return self.forget(authorizer, key);
        }
        self.keys.insert(Arc::clone(key));
        let object = decode(value);
        authorizer.apply(self.group, self.plural, &object_key(key), object.as_ref());
    }

    fn forget(&mut self, authorizer: &Authorizer, key: &Arc<str>) {
        if self.keys.remove(key) {
            authorizer.apply(self.group, self.plural, &object_key(key), None);
        }
    }

    /// Pods that wait for a node are no node's: nobody need read them.
    fn leads_somewhere(&self, value: &[u8]) -> bool {
        self.plural != "pods"
            || std::str::from_utf8(value).is_ok_and(|text| text.contains(NODE_NAME))
    }

    fn reload(&mut self, store: &Store, authorizer: &Authorizer) {
        let snapshot = store.snapshot(&partition(self.group, self.plural));
        let gone: Vec<Arc<str>> = self
            .keys
            .iter()
            .filter(|key| snapshot.get(key).is_none())
            .cloned()
            .collect();
        for key in gone {
            self.forget(authorizer, &key);
        }
        for (key, entry) in snapshot.iter() {
            self.set(authorizer, key, &entry.value);
        }
        self.applied = snapshot.revision();
    }
}

fn object_key(key: &str) -> ObjectKey {
    match key.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new("", key),
    }
}

#[cfg(test)]
mod tests;
