//! Keeps the webhooks in step with their configurations in the store.
//!
//! `load` puts in what is there, `follow` what changes. Whoever is told that a configuration was
//! written may find it a moment behind, as with upstream's informers. Of a configuration that did
//! not change, the webhooks stay as they were read.

use super::hook::Hook;
use super::{Does, GROUP, Webhooks};
use crate::view::{decode, partition};
use coracle_store::{Revision, Snapshot, Store, WatchClosed};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Events that are taken at a time: all of them end in one reading.
const EVENTS_MAX: usize = 256;

/// What was read of each configuration, by its name.
#[derive(Default)]
struct Known(BTreeMap<Arc<str>, (Revision, Vec<Arc<Hook>>)>);

impl Known {
    /// By the names of configurations, in which order snapshots are.
    fn read(&mut self, snapshot: &Snapshot) -> Vec<Arc<Hook>> {
        self.0.retain(|name, _| snapshot.get(name).is_some());
        let mut all = Vec::new();
        for (name, entry) in snapshot.iter() {
            let known = self.0.get(name);
            if known.is_none_or(|(revision, _)| *revision != entry.modified) {
                let object = decode(&entry.value);
                let hooks = object.iter().flat_map(Hook::of).map(Arc::new).collect();
                self.0.insert(Arc::clone(name), (entry.modified, hooks));
            }
            let hooks = self.0.get(name).map(|(_, hooks)| hooks.iter());
            all.extend(hooks.into_iter().flatten().map(Arc::clone));
        }
        all
    }
}

pub fn load(store: &Store, webhooks: &Webhooks) {
    for does in Does::ALL {
        let snapshot = store.snapshot(&partition(GROUP, does.plural()));
        webhooks
            .lists
            .put(does, Known::default().read(&snapshot).into());
    }
}

/// Until shutdown, or until the store closes.
pub async fn follow(store: Store, webhooks: Arc<Webhooks>, shutdown: CancellationToken) {
    let both = async {
        let [mutating, judging] = Does::ALL.map(|does| run(does, &store, &webhooks));
        tokio::join!(mutating, judging);
    };
    shutdown.run_until_cancelled(both).await;
}

async fn run(does: Does, store: &Store, webhooks: &Webhooks) {
    let partition = partition(GROUP, does.plural());
    let mut known = Known::default();
    loop {
        let snapshot = store.snapshot(&partition);
        webhooks.lists.put(does, known.read(&snapshot).into());
        // Nothing is older than the newest state: a watch from there begins.
        let Ok(mut watch) = store.watch(&partition, snapshot.revision()) else {
            tokio::task::yield_now().await;
            continue;
        };
        watch.ready().await;
        if let Err(WatchClosed::StoreClosed) = watch.take(EVENTS_MAX) {
            return;
        }
    }
}
