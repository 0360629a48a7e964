//! On which nodes Services have ready endpoints. Followed only while a Service asks for it, and kept as
//! names of nodes alone.

use coracle_client::informer::{Event, Filter, Informers};
use coracle_client::queue::WorkQueue;
use coracle_client::{ObjectKey, key_of};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::endpoint_slices::{SERVICE_NAME, service_of};

/// Names of nodes.
pub type NodeNames = BTreeSet<String>;

#[derive(Clone, Debug, Default)]
pub struct Backends {
    /// The Service of each slice, and the nodes of its ready endpoints. None without such.
    slices: BTreeMap<ObjectKey, (ObjectKey, NodeNames)>,
}

impl Backends {
    /// True when something is another than before.
    pub fn set(&mut self, slice: &EndpointSlice) -> bool {
        let key = key_of(slice);
        let all = slice.endpoints.iter().flatten();
        let ready = all.filter(|endpoint| is_ready(endpoint));
        let nodes: NodeNames = ready.filter_map(|of| of.node_name.clone()).collect();
        let service = service_of(&slice.metadata).filter(|_| !nodes.is_empty());
        let now = service.map(|service| (service, nodes));
        let before = match now.clone() {
            Some(of) => self.slices.insert(key, of),
            None => self.slices.remove(&key),
        };
        before != now
    }

    pub fn remove(&mut self, slice: &EndpointSlice) -> bool {
        self.slices.remove(&key_of(slice)).is_some()
    }

    /// Of all Services that have ready endpoints.
    pub fn by_service(&self) -> BTreeMap<&ObjectKey, NodeNames> {
        let mut all: BTreeMap<&ObjectKey, NodeNames> = BTreeMap::new();
        for (service, nodes) in self.slices.values() {
            all.entry(service)
                .or_default()
                .extend(nodes.iter().cloned());
        }
        all
    }
}

/// What says nothing is ready.
fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.and_then(|conditions| conditions.ready) != Some(false)
}

/// None until a list is whole.
pub type Shared = Arc<Mutex<Option<Backends>>>;

/// Runs until `shutdown`; follows while `asked`, and adds `key` with each change.
pub async fn follow_while_asked(
    informers: Informers,
    mut asked: watch::Receiver<bool>,
    backends: Shared,
    (queue, key): (WorkQueue<ObjectKey>, ObjectKey),
    shutdown: CancellationToken,
) {
    let following = async {
        while asked.wait_for(|is_asked| *is_asked).await.is_ok() {
            let sink = sink(backends.clone(), queue.clone(), key.clone());
            let filter = Filter::labels(SERVICE_NAME);
            tokio::select! {
                () = informers.follow::<EndpointSlice>(filter, sink, shutdown.clone()) => {}
                _ = asked.wait_for(|is_asked| !*is_asked) => {}
            }
            *backends.lock() = None;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = following => {}
    }
}

fn sink(
    backends: Shared,
    queue: WorkQueue<ObjectKey>,
    key: ObjectKey,
) -> impl FnMut(Event<EndpointSlice>) + Send {
    let mut listed = Backends::default();
    move |event| {
        let has_changed = match event {
            Event::Init => {
                listed = Backends::default();
                false
            }
            Event::InitApply(slice) => {
                listed.set(&slice);
                false
            }
            Event::InitDone => {
                *backends.lock() = Some(std::mem::take(&mut listed));
                true
            }
            Event::Apply(slice) => change(&backends, |known| known.set(&slice)),
            Event::Delete(slice) => change(&backends, |known| known.remove(&slice)),
        };
        if has_changed {
            queue.add(key.clone());
        }
    }
}

fn change(backends: &Shared, change: impl FnOnce(&mut Backends) -> bool) -> bool {
    backends.lock().as_mut().is_some_and(change)
}

#[cfg(test)]
mod tests;
