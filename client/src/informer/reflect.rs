//! The task of an informer: turns what list and watch show into changes of the store.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::object::ObjectKey;
use kube::Api;

use super::follow::{Event, Paging, Sink, follow_api};
use super::lean::Lean;
use super::{Change, Filter, Informer, Kind};
use crate::key_of;

/// Objects of one page of a list: bounds the memory of a list of any size.
const PAGE_SIZE: u32 = 500;

/// Runs until the informers are shut down.
pub(super) async fn run<K: Kind>(
    informer: Informer<K>,
    api: Api<Lean<K>>,
    filter: Filter,
    resync_period: Duration,
) {
    let shutdown = informer.shared.shutdown.clone();
    let mut reflector = Reflector::new(informer);
    let paging = Paging {
        page_size: PAGE_SIZE,
        resync_period: Some(resync_period),
    };
    follow_api(api, filter, paging, &mut reflector, shutdown).await;
}

/// Applies events to the store and tells the handlers.
struct Reflector<K> {
    informer: Informer<K>,
    /// What the list under way has shown so far; the rest is gone when it is complete.
    listed: HashSet<ObjectKey>,
}

impl<K: Kind> Reflector<K> {
    fn new(informer: Informer<K>) -> Self {
        Self {
            informer,
            listed: HashSet::new(),
        }
    }

    fn upsert(&self, key: ObjectKey, object: K) {
        let shared = &self.informer.shared;
        let handlers = shared.handlers.lock();
        let known = shared.store.read().get(&key);
        if let Some(known) = &known {
            if known.meta().resource_version == object.meta().resource_version
                && known.meta().uid == object.meta().uid
            {
                return; // Listed again and unchanged: the copy at hand stays.
            }
            if known.meta().uid != object.meta().uid {
                shared.store.write().remove(&key);
                tell(&handlers, &Change::Deleted(known.clone()));
            }
        }
        let new = Arc::new(object);
        let old = shared.store.write().insert(key, &new);
        match old {
            Some(old) => tell(&handlers, &Change::Updated { old, new }),
            None => tell(&handlers, &Change::Added(new)),
        }
    }

    fn remove(&self, key: &ObjectKey) {
        let handlers = self.informer.shared.handlers.lock();
        let old = self.informer.shared.store.write().remove(key);
        if let Some(old) = old {
            tell(&handlers, &Change::Deleted(old));
        }
    }

    /// The event carries the object's last state, which is newer than the copy at hand.
    fn remove_last(&self, key: ObjectKey, object: K) {
        let handlers = self.informer.shared.handlers.lock();
        if self.informer.shared.store.write().remove(&key).is_some() {
            tell(&handlers, &Change::Deleted(Arc::new(object)));
        }
    }
}

impl<K: Kind> Sink<K> for Reflector<K> {
    fn apply(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let key = key_of(&object);
                self.upsert(key.clone(), object);
                self.listed.insert(key);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let store = self.informer.shared.store.read();
                let gone = store.keys_where(|key| !listed.contains(key));
                drop(store);
                for key in gone {
                    self.remove(&key);
                }
                self.informer.shared.synced.send_replace(true);
            }
            Event::Apply(object) => self.upsert(key_of(&object), object),
            Event::Delete(object) => self.remove_last(key_of(&object), object),
        }
    }

    /// Each object under the lock for itself, so that registration need not wait for all.
    fn resync(&mut self) {
        for object in self.informer.list() {
            let handlers = self.informer.shared.handlers.lock();
            tell(&handlers, &Change::Resync(object));
        }
    }
}

/// A handler that panics misses this change and nothing else.
fn tell<K: Kind>(handlers: &[super::Handler<K>], change: &Change<K>) {
    for handler in handlers {
        if std::panic::catch_unwind(AssertUnwindSafe(|| handler(change))).is_err() {
            let key = key_of(change.object().as_ref());
            tracing::error!(kind = %K::kind(&()), %key, "a handler of changes panicked");
        }
    }
}
