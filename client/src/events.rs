//! Records events about objects: what `kubectl get events` and `kubectl describe` show.
//!
//! Recording never blocks and never fails: what does not fit the queue is dropped, as upstream
//! does. Repeated events are counted on one Event object, floods of similar ones are combined,
//! and an object that causes too many is muted for a while (see `correlate`).

use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

use crate::Client;
use crate::clock::Clock;

mod correlate;
mod sink;

use correlate::{Observed, Source};

/// Events that wait to be written, as upstream's broadcaster bounds them.
const QUEUE_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Records events in the name of one component. Cheap to clone; clones share the queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    clock: Clock,
    queue: mpsc::Sender<Observed>,
}

impl Recorder {
    /// `component` is what `kubectl` shows under "From"; `host` is the node, or empty.
    /// Spawns the task that writes, so it needs a running tokio runtime; the task ends when the
    /// last clone is dropped and the queue is empty.
    pub fn new(client: Client, component: &str, host: &str) -> Self {
        Self::with_clock(client, component, host, Clock::system())
    }

    pub fn with_clock(client: Client, component: &str, host: &str, clock: Clock) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let source = Source {
            component: component.to_owned(),
            host: host.to_owned(),
        };
        tokio::spawn(sink::run(client, source, waiting));
        Self { clock, queue }
    }

    /// Notes that something happened to an object. `reason` is a short UpperCamelCase word.
    pub fn event(
        &self,
        object: &ObjectReference,
        event_type: EventType,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.annotated(object, BTreeMap::new(), event_type, reason, message);
    }

    /// An event with annotations of its own.
    pub fn annotated(
        &self,
        object: &ObjectReference,
        annotations: BTreeMap<String, String>,
        event_type: EventType,
        reason: &str,
        message: impl Into<String>,
    ) {
        let observed = Observed {
            object: object.clone(),
            event_type,
            reason: reason.to_owned(),
            message: message.into(),
            annotations,
            at: self.clock.now(),
        };
        if self.queue.try_send(observed).is_err() {
            tracing::debug!(reason, "event dropped: the queue is full or closed");
        }
    }
}

/// A reference to a typed object as events carry it.
pub fn reference<K: kube::Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

#[cfg(test)]
mod tests;
