//! When the change happened that a write follows: for those who measure how long it took.
//!
//! The time of the Service's making at first, then the earliest of what changed since the last
//! pass: a pod's readiness, or the Service being another one. Called for one Service by one worker.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coracle_client::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;

use crate::pods;
use crate::services::{LAST_CHANGE, Service};

/// Bounded by the Services there are and their pods.
#[derive(Debug, Default)]
pub(crate) struct TriggerTimes {
    seen: Mutex<HashMap<ObjectKey, Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    service: Option<Timestamp>,
    /// By the pod's name.
    pods: HashMap<String, Timestamp>,
}

impl TriggerTimes {
    /// None when nothing changed that has a time.
    pub(crate) fn next(
        &self,
        key: &ObjectKey,
        service: &Service,
        pods: &[Arc<Pod>],
    ) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref();
        let mut now = Seen {
            service: created.map(|time| time.0),
            pods: HashMap::new(),
        };
        for pod in pods {
            if let (Some(name), Some(time)) = (&pod.metadata.name, time_of(pod)) {
                now.pods.insert(name.clone(), time);
            }
        }
        let mut seen = self.seen.lock();
        let Some(before) = seen.get_mut(key) else {
            let first = now.service;
            seen.insert(key.clone(), now);
            return first;
        };
        let is_later = |(name, time): &(&String, &Timestamp)| {
            before.pods.get(*name).is_none_or(|before| *time > before)
        };
        let changed = now.pods.iter().filter(is_later).map(|(_, time)| *time);
        let service = now.service.filter(|time| Some(*time) > before.service);
        let earliest = changed.chain(service).min();
        *before = now;
        earliest
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.seen.lock().remove(key);
    }
}

fn time_of(pod: &Pod) -> Option<Timestamp> {
    let ready = pods::condition(pod, "Ready")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Says it on the object, or takes off what an earlier write said.
pub(crate) fn annotate(meta: &mut ObjectMeta, time: Option<Timestamp>) {
    let mut annotations: BTreeMap<_, _> = meta.annotations.take().unwrap_or_default();
    match time {
        Some(time) => annotations.insert(LAST_CHANGE.to_owned(), time.to_string()),
        None => annotations.remove(LAST_CHANGE),
    };
    meta.annotations = (!annotations.is_empty()).then_some(annotations);
}

#[cfg(test)]
mod tests;
