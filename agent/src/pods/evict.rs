//! Ends a pod for the good of its node.
//!
//! The pod's containers are stopped with a grace of the node's choice, its volumes go, and it has
//! failed with a reason that says why; who owns it makes another.

use super::worker::Desired;
use super::{Pods, Shared, state};
use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub struct Eviction {
    pub reason: String,
    pub message: String,
    /// Over the pod's own grace, when it is less.
    pub grace_seconds: Option<i64>,
    /// Of the condition `DisruptionTarget`; None when the pod has itself to blame.
    pub disruption: Option<String>,
    /// Cancelled when the pod is down and its volumes are gone.
    pub done: CancellationToken,
}

impl Pods {
    /// Pods that have not ended and are not being evicted.
    pub fn active(&self) -> Vec<Arc<Pod>> {
        let workers = self.shared.workers.lock();
        let desired = workers.values().map(|handle| handle.desired.borrow());
        desired
            .filter(|desired| is_active(desired))
            .map(|desired| desired.pod.clone())
            .collect()
    }

    /// None when the pod has ended, or is being evicted already.
    pub fn evict(&self, pod: &Pod, eviction: Eviction) -> Option<CancellationToken> {
        self.shared.evict(pod, eviction)
    }
}

impl Shared {
    pub(super) fn evict(&self, pod: &Pod, eviction: Eviction) -> Option<CancellationToken> {
        let workers = self.workers.lock();
        let handle = workers.get(pod.metadata.uid.as_deref()?)?;
        if !is_active(&handle.desired.borrow()) {
            return None;
        }
        let done = eviction.done.clone();
        handle
            .desired
            .send_modify(|desired| desired.eviction = Some(Arc::new(eviction)));
        Some(done)
    }
}

fn is_active(desired: &Desired) -> bool {
    !desired.is_gone && desired.eviction.is_none() && !state::has_ended(&desired.pod)
}
