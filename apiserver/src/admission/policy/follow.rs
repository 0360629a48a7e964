//! Keeps the policies in step with the store.
//!
//! `load` puts in what is there, `follow` what changes. Whoever is told that a policy was written may
//! find it a moment behind, as with upstream's informers. A policy that did not change is not compiled
//! again.

use super::binding::Binding;
use super::definition::Policy;
use super::{All, Bound, Does, GROUP, Policies, aside};
use crate::view::{decode, partition};
use coracle_store::{Revision, Snapshot, Store, Watch, WatchClosed};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Events that are taken at a time: all of them end in one reading.
const EVENTS_MAX: usize = 256;

/// What was read of each policy, by its name.
#[derive(Default)]
struct Known(BTreeMap<Arc<str>, (Revision, Arc<Policy>)>);

impl Known {
    /// Those that have bindings, by their names, in which order snapshots are.
    fn read(&mut self, policies: &Snapshot, bindings: &Snapshot) -> All {
        let mut bound: BTreeMap<String, Vec<Arc<Binding>>> = BTreeMap::new();
        for (_, entry) in bindings.iter() {
            if let Some(binding) = decode(&entry.value).map(|object| Binding::read(&object)) {
                let all = bound.entry(binding.policy.clone()).or_default();
                all.push(Arc::new(binding));
            }
        }
        self.0.retain(|name, _| bound.contains_key(&**name));
        let mut all = Vec::new();
        for (name, entry) in policies.iter() {
            let Some(bindings) = bound.remove(&**name) else {
                continue;
            };
            let known = self.0.get(name);
            let known = known.filter(|(revision, _)| *revision == entry.modified);
            let policy = match known {
                Some((_, policy)) => Arc::clone(policy),
                None => match decode(&entry.value) {
                    Some(object) => Arc::new(Policy::read(&object)),
                    None => continue,
                },
            };
            let kept = (entry.modified, Arc::clone(&policy));
            self.0.insert(Arc::clone(name), kept);
            all.push(Bound { policy, bindings });
        }
        all.into()
    }
}

fn snapshots(store: &Store, does: Does) -> [Snapshot; 2] {
    [does.policies(), does.bindings()].map(|plural| store.snapshot(&partition(GROUP, plural)))
}

pub fn load(store: &Store, policies: &Policies) {
    for does in Does::ALL {
        let [definitions, bindings] = snapshots(store, does);
        policies
            .lists
            .put(does, Known::default().read(&definitions, &bindings));
    }
}

/// Until shutdown, or until the store closes.
pub async fn follow(store: Store, policies: Arc<Policies>, shutdown: CancellationToken) {
    let all = async {
        let each = Does::ALL.map(|does| run(does, &store, &policies));
        futures::future::join_all(each).await;
    };
    shutdown.run_until_cancelled(all).await;
}

async fn run(does: Does, store: &Store, policies: &Policies) {
    let mut known = Known::default();
    loop {
        let [definitions, bindings] = snapshots(store, does);
        policies
            .lists
            .put(does, aside(|| known.read(&definitions, &bindings)));
        // Nothing is older than the newest state: a watch from there begins.
        let begin = |plural: &str, snapshot: &Snapshot| {
            store
                .watch(&partition(GROUP, plural), snapshot.revision())
                .ok()
        };
        let watches = begin(does.policies(), &definitions).zip(begin(does.bindings(), &bindings));
        let Some((mut definitions, mut bindings)) = watches else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::select! {
            () = definitions.ready() => {}
            () = bindings.ready() => {}
        }
        if is_over(&mut definitions) || is_over(&mut bindings) {
            return;
        }
    }
}

/// Takes what a watch has, all of which ends in one reading.
fn is_over(watch: &mut Watch) -> bool {
    matches!(watch.take(EVENTS_MAX), Err(WatchClosed::StoreClosed))
}
