//! What a loop wrote, by uid and generation, until the watch has shown it.
//!
//! A loop that looks at a Service while its cache lags behind its own writes would make a slice a
//! second time. It asks here first, and looks again a little later.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::ObjectKey;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{SliceMeta, service_of};

/// After this the watch is taken to have lost it, or to have told of it before it was noted.
const BELIEVED_FOR: Duration = Duration::from_secs(5 * 60);

/// Bounded by the slices there are, and those whose deletion the watch has not shown.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// By Service.
    written: Mutex<HashMap<ObjectKey, BySlice>>,
}

/// By the slice's uid.
type BySlice = HashMap<String, (Written, Instant)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Generation(i64),
    Deleted,
}

fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

fn generation(meta: &ObjectMeta) -> i64 {
    meta.generation.unwrap_or(0)
}

impl Tracker {
    /// As the server answered a creation or an update.
    pub(crate) fn wrote(&self, slice: &EndpointSlice) {
        let state = Written::Generation(generation(&slice.metadata));
        self.note(&slice.metadata, state);
    }

    /// Noted before it is asked for, so that the watch cannot tell of it first.
    pub(crate) fn deleting(&self, slice: &EndpointSlice) {
        self.note(&slice.metadata, Written::Deleted);
    }

    /// A slice that was found in order: whoever changes it now is noticed.
    pub(crate) fn found(&self, slice: &EndpointSlice) {
        if !self.has(&slice.metadata) {
            self.wrote(slice);
        }
    }

    fn note(&self, meta: &ObjectMeta, state: Written) {
        if let Some(key) = service_of(meta) {
            let mut written = self.written.lock();
            let slices = written.entry(key).or_default();
            slices.insert(uid(meta).to_owned(), (state, Instant::now()));
        }
    }

    fn get(&self, meta: &ObjectMeta) -> Option<Written> {
        let written = self.written.lock();
        let known = written.get(&service_of(meta)?)?.get(uid(meta));
        known.map(|(state, _)| *state)
    }

    pub(crate) fn has(&self, meta: &ObjectMeta) -> bool {
        self.get(meta).is_some()
    }

    /// The slice is not as this loop left it: another one, or written by somebody since.
    pub(crate) fn is_news(&self, meta: &ObjectMeta) -> bool {
        match self.get(meta) {
            None => true,
            Some(Written::Generation(known)) => generation(meta) > known,
            Some(Written::Deleted) => generation(meta) > -1,
        }
    }

    /// Forgets a slice that is gone. False when somebody else deleted it.
    pub(crate) fn was_deletion_expected(&self, meta: &ObjectMeta) -> bool {
        let Some(key) = service_of(meta) else {
            return true;
        };
        let mut written = self.written.lock();
        let slices = written.get_mut(&key);
        let known = slices.and_then(|slices| slices.remove(uid(meta)));
        known.is_none_or(|(known, _)| known == Written::Deleted)
    }

    /// Whether what the watch shows of a Service's slices, those that are being deleted among
    /// them, is older than what was written.
    pub(crate) fn is_stale(&self, key: &ObjectKey, shown: &[Arc<SliceMeta>]) -> bool {
        let written = self.written.lock();
        let Some(slices) = written.get(key) else {
            return false;
        };
        let shown_as = |uid: &str| {
            let mut metas = shown.iter().map(|slice| &slice.metadata);
            metas.find(|meta| meta.uid.as_deref() == Some(uid))
        };
        let mut believed = slices
            .iter()
            .filter(|(_, (_, since))| since.elapsed() < BELIEVED_FOR);
        believed.any(|(uid, (state, _))| match (state, shown_as(uid)) {
            // A finalizer may hold it long after the watch has told of its deletion.
            (Written::Deleted, shown) => shown.is_some_and(|it| it.deletion_timestamp.is_none()),
            (Written::Generation(known), Some(shown)) => *known > generation(shown),
            (Written::Generation(_), None) => true,
        })
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.written.lock().remove(key);
    }
}
