//! From informers to cache and queue: what each change of a pod or a node means here.

use crate::framework::{Profiles, WorldChange};
use crate::pod_info::PodInfo;
use crate::queue::Queue;
use crate::views::Views;
use coracle_client::clock::Instant;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

mod budgets;
mod devices;
mod first_list; // What the start waits for.
mod nodes; // As they come, without a copy of whole ones.
mod pods; // The same.
mod storage;
mod tables;

pub use budgets::follow as follow_budgets;
pub use devices::DeviceKinds;
pub use first_list::synced;
#[cfg(test)]
pub use nodes::Nodes;
pub use nodes::keep as keep_nodes;
#[cfg(test)]
pub use pods::Pods;
pub use pods::keep as keep_pods;
pub use storage::Storage;
pub use tables::keep as keep_tables;

/// What changes are applied to.
#[derive(Clone, Debug)]
pub struct World {
    pub views: Views,
    pub queue: Arc<Queue>,
    pub profiles: Profiles,
}

/// An object that makes something panic is missed, and no other.
fn guarded(kind: &str, id: &str, work: impl FnOnce()) {
    if std::panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!(kind, id, "what came of an object could not be taken in");
    }
}

impl World {
    fn set_pod(&self, pod: &Arc<PodInfo>, old: Option<&Arc<PodInfo>>, now: Instant) {
        if pod.is_terminal {
            self.withdrawn(pod, now);
            return self.gone(Arc::clone(pod), now);
        }
        if !pod.node_name().is_empty() {
            // Pods that wait for others looked at this one while it was on its way at most.
            let settled = self.views.cache.lock().set_pod(Arc::clone(pod));
            self.queue.remove(&pod.uid);
            if settled.gave_up {
                self.gave_up_its_node(pod, now);
            }
            let told = if settled.is_news {
                Some(WorldChange::PodPlaced(Arc::clone(pod)))
            } else {
                old.and_then(|old| updated(old, pod))
            };
            if let Some(told) = told {
                self.queue.world_changed(told, now);
            }
        } else if self.profiles.of(pod).is_some() && !pod.is_deleting {
            let mut cache = self.views.cache.lock();
            // A pod assumed on a node waits for its binding, not for a cycle; if that fails, it
            // is tried again as it is by now.
            if cache.update_assumed(pod) {
                drop(cache);
                return self.queue.set_known(Arc::clone(pod), now);
            }
            let gave_up = cache.set_nominated(pod);
            drop(cache);
            self.queue.set(Arc::clone(pod), now);
            if gave_up {
                self.gave_up_its_node(pod, now);
            }
        } else {
            self.views.cache.lock().update_assumed(pod);
            self.withdrawn(pod, now);
        }
    }

    /// A pod that waits no more, though it is on no node.
    fn withdrawn(&self, pod: &Arc<PodInfo>, now: Instant) {
        self.queue.remove(&pod.uid);
        if self.views.cache.lock().forget_nominated(&pod.uid) {
            self.gave_up_its_node(pod, now);
        }
    }

    /// Who is not more important counted the pod as if it were on the node that it was promised.
    fn gave_up_its_node(&self, pod: &Arc<PodInfo>, now: Instant) {
        let change = WorldChange::PodGone(Arc::clone(pod));
        self.queue.world_changed(change, now);
    }

    fn gone(&self, pod: Arc<PodInfo>, now: Instant) {
        let was_placed = {
            let mut cache = self.views.cache.lock();
            let was_placed = cache.contains(&pod.uid);
            cache.remove_pod(&pod.uid);
            was_placed
        };
        if was_placed {
            self.queue.world_changed(WorldChange::PodGone(pod), now);
        }
    }
}

/// What the update of a pod on a node means, if anything: most updates say how it fares.
fn updated(old: &Arc<PodInfo>, new: &Arc<PodInfo>) -> Option<WorldChange> {
    let is_same = old.labels() == new.labels() && old.requests == new.requests;
    (!is_same).then(|| WorldChange::PodUpdated {
        old: Arc::clone(old),
        new: Arc::clone(new),
    })
}

#[cfg(test)]
mod tests;
