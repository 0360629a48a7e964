//! The task of an informer: turns list and watch into changes of the store.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::object::ObjectKey;
use futures::StreamExt;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use rand::RngExt;
use tokio::time::Instant;

use super::{Change, Filter, Informer, Kind};
use crate::key_of;

/// The first wait after a failure: short, so that a restarted server is found at once.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
/// The longest wait, as upstream's reflector has it.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Objects of one page of a list: bounds the memory of a list of any size.
const PAGE_SIZE: u32 = 500;

/// Runs until the informers are shut down.
pub(super) async fn run<K: Kind>(
    informer: Informer<K>,
    api: Api<K>,
    filter: Filter,
    resync_period: Duration,
) {
    let shutdown = informer.shared.shutdown.clone();
    let mut config = watcher::Config::default().page_size(PAGE_SIZE);
    config.field_selector = filter.fields;
    config.label_selector = filter.labels;
    let work = async {
        let mut reflector = Reflector::new(informer);
        let mut failures = 0;
        loop {
            // Left only when the watch cannot be resumed: the next round lists from scratch.
            watch(&mut reflector, &api, &config, resync_period, &mut failures).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
    }
}

async fn watch<K: Kind>(
    reflector: &mut Reflector<K>,
    api: &Api<K>,
    config: &watcher::Config,
    resync_period: Duration,
    failures: &mut u32,
) {
    let mut events = pin!(watcher::watcher(api.clone(), config.clone()));
    let mut resync_at = Instant::now() + jittered(resync_period);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = tokio::time::sleep_until(resync_at) => {
                reflector.resync();
                resync_at = Instant::now() + jittered(resync_period);
                continue;
            }
        };
        match event {
            Some(Ok(event)) => {
                // A list that begins proves nothing yet; what arrives does.
                if !matches!(event, Event::Init) {
                    *failures = 0;
                }
                reflector.apply(event);
            }
            Some(Err(error)) => {
                let delay = backoff(*failures);
                log_failure::<K>(&error, *failures, delay);
                *failures = failures.saturating_add(1);
                tokio::time::sleep(delay).await;
                if is_expired(&error) {
                    return;
                }
            }
            None => return,
        }
    }
}

/// An outage is told once, then at a level for those who look for it.
fn log_failure<K: Kind>(error: &watcher::Error, failures: u32, delay: Duration) {
    let kind = K::kind(&());
    let retry_ms = delay.as_millis() as u64;
    if failures == 2 && !is_expired(error) {
        tracing::warn!(%kind, error = %error, retry_ms, "cannot list or watch");
    } else {
        tracing::debug!(%kind, error = %error, retry_ms, "list or watch interrupted");
    }
}

/// The revision to resume from is gone, and asking again for it would fail forever.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 410,
        _ => false,
    }
}

fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    jittered(BACKOFF_MIN.saturating_mul(factor).min(BACKOFF_MAX))
}

/// Between the duration and twice it, so that clients of a restarted server do not march in step.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::rng().random_range(1.0..2.0))
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

    fn upsert(&self, key: ObjectKey, mut object: K) {
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
        object.meta_mut().managed_fields = None;
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
    fn remove_last(&self, key: ObjectKey, mut object: K) {
        let handlers = self.informer.shared.handlers.lock();
        if self.informer.shared.store.write().remove(&key).is_some() {
            object.meta_mut().managed_fields = None;
            tell(&handlers, &Change::Deleted(Arc::new(object)));
        }
    }

    /// Each object under the lock for itself, so that registration need not wait for all.
    fn resync(&self) {
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
