//! Keeps the EndpointSlices of every Service that selects pods.
//!
//! Reads Services, pods, nodes, and the metadata of slices; asks the server for the slices of the
//! Service it looks at. Writes slices and nothing else; those of a Service that is gone are the
//! garbage collector's. The tracker guards against a watch that lags behind this loop's writes.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::endpoint_slices::{self, STALE_WAIT, SliceMeta, Tracker};
use crate::services::{self, Service};
use crate::trigger_time::TriggerTimes;
use crate::{Context, node_pods};

mod desired; // Pure: what pods are as endpoints.
mod packing; // Pure: endpoints into slices, with few writes.
mod plan; // Pure. Start reading here.
mod slice; // Pure: labels and owners of slices.

mod topology; // Hints that divide endpoints among zones by their CPUs.
mod traffic; // Pure: hints of a Service's traffic distribution.

mod execute;

use execute::ReconcileError;
use topology::Topology;

/// Names this controller on its slices.
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "endpoint-slice-controller";
/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;
/// Changes of slices by others are gathered for so long.
const FOREIGN_CHANGE_WAIT: Duration = Duration::from_secs(1);

struct Controller {
    client: Client,
    services: Informer<Service>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    slices: Informer<SliceMeta>,
    queue: WorkQueue<ObjectKey>,
    tracker: Tracker,
    trigger_times: TriggerTimes,
    topology: Topology,
    nodes_changed: Notify,
    recorder: Recorder,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        services: context.informers.get(),
        pods: context.informers.get(),
        nodes: context.informers.get(),
        slices: context.informers.get(),
        queue: WorkQueue::new(),
        tracker: Tracker::default(),
        trigger_times: TriggerTimes::default(),
        topology: Topology::default(),
        nodes_changed: Notify::new(),
        recorder: context.recorder(COMPONENT),
    });
    controller.follow();
    let synced = controller.services.synced().await
        && controller.pods.synced().await
        && controller.nodes.synced().await
        && controller.slices.synced().await;
    if !synced {
        return;
    }
    controller.look_at_nodes();
    let reconcile = control_loop::with(Arc::clone(&controller), |it, key| {
        Box::pin(it.reconcile(key))
    })
    .telling(controller.services.clone(), controller.recorder.clone());
    let (queue, shutdown) = (controller.queue.clone(), context.shutdown);
    let work = control_loop::run("endpointslice", queue, WORKERS, reconcile, shutdown.clone());
    tokio::join!(work, keep_looking_at_nodes(&controller, shutdown));
}

async fn keep_looking_at_nodes(controller: &Controller, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = controller.nodes_changed.notified() => controller.look_at_nodes(),
        }
    }
}

impl Controller {
    fn follow(self: &Arc<Self>) {
        services::follow(&self.services, &self.pods, &self.queue);
        node_pods::index(&self.pods);
        endpoint_slices::index(&self.slices);
        let told = Arc::clone(self);
        self.slices.on_change(move |change| {
            for key in endpoint_slices::touched(&told.tracker, MANAGER, change) {
                told.queue.add_after(key, FOREIGN_CHANGE_WAIT);
            }
        });
        let told = Arc::clone(self);
        self.nodes.on_change(move |change| {
            let counts = match change {
                Change::Added(_) | Change::Deleted(_) => true,
                Change::Updated { old, new } => topology::is_other_capacity(old, new),
                Change::Resync(_) => false,
            };
            if counts {
                told.nodes_changed.notify_one();
            }
            if let Change::Added(node) = change {
                told.look_at_pods_of(node);
            }
        });
    }

    /// Pods were left out of slices while their node was not there.
    fn look_at_pods_of(&self, node: &Node) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        for pod in node_pods::on_node(&self.pods, name) {
            for key in services::selecting(&self.services, &pod.metadata) {
                self.queue.add(key);
            }
        }
    }

    /// Zones have other shares now: Services whose hints are too far from them are looked at.
    fn look_at_nodes(&self) {
        self.topology.set_nodes(&self.nodes.list());
        for key in self.topology.overloaded() {
            self.queue.add(key);
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(service) = self.services.get(key) else {
            self.tracker.forget(key);
            self.trigger_times.forget(key);
            self.topology.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        if service.is_external_name() || service.selector().is_none() {
            return Ok(Requeue::Never); // Somebody else says where it leads.
        }
        let pods = services::pods_of(&service, &self.pods);
        let mut known = endpoint_slices::of_service(&self.slices, key, MANAGER);
        if self.tracker.is_stale(key, &known) {
            return Ok(Requeue::After(STALE_WAIT));
        }
        known.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        let existing = endpoint_slices::read(&self.client, &key.namespace, &known).await;
        let Some(existing) = existing.map_err(|source| ReconcileError::read(key, source))? else {
            return Ok(Requeue::After(STALE_WAIT));
        };
        // Also those of a predecessor: who deletes one from now on is noticed.
        for slice in &existing {
            self.tracker.found(slice);
        }
        let changed_at = self.trigger_times.next(key, &service, &pods);
        let observed = plan::Observed {
            service: &service,
            pods: &pods,
            node: &|name| self.nodes.get(&ObjectKey::new("", name)),
            existing,
        };
        let plan = plan::plan(observed, &self.topology);
        let done = Box::pin(self.execute(&service, plan, changed_at)).await;
        if let Err(error) = &done {
            let message = format!(
                "Error updating Endpoint Slices for Service {}: {}",
                service.text(),
                error.message()
            );
            self.recorder.event(
                &events::reference(service.as_ref()),
                EventType::Warning,
                "FailedToUpdateEndpointSlices",
                message,
            );
        }
        done.map(|()| Requeue::Never)
    }
}

#[cfg(test)]
mod tests;
