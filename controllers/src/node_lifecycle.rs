//! Notices nodes that are silent or unwell, says so in their conditions and taints, and decides
//! when the pods of a lost node may be moved.
//!
//! Reads Nodes, Leases of nodes, and Pods; writes conditions of nodes that went silent, taints,
//! and readiness of pods that nobody can vouch for. Never deletes a pod: `taint_eviction` does,
//! by the NoExecute taints given here. No polling: each node has one timer, which ends when its
//! grace would, and a sign of life costs one entry of a table.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::{Clock, Instant};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{Recorder, reference};
use coracle_client::informer::{Change, Filter, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use parking_lot::Mutex;

use crate::{Context, node_pods, pods};

mod health; // Pure: who was heard of when.
mod limiter; // Pure.
mod node; // Pure: what is read off a node.
mod plan; // Pure: conditions, taints, labels of one node. Start reading here.
mod zones; // Pure: who may lose its pods now.

mod execute;

use execute::WriteError;
use health::{Graces, Health, Silence};
use node::Readiness;
use zones::Zones;

/// As many as upstream's; a worker waits for the server most of its time.
const WORKERS: usize = 8;
/// How long a node may take to report for the first time, as `--node-startup-grace-period`.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// Nodes lost within this are judged together, which shows sooner that all are.
const GATHER: Duration = Duration::from_millis(500);
const LEASE_NAMESPACE: &str = "kube-node-lease";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Node(String),
    /// A pod that came to a node which is not ready.
    Pod(ObjectKey),
    /// All nodes together.
    Zones,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node {name}"),
            Self::Pod(key) => write!(f, "pod {key}"),
            Self::Zones => f.write_str("zones"),
        }
    }
}

struct Controller {
    client: Client,
    nodes: Informer<Node>,
    leases: Informer<Lease>,
    pods: Informer<Pod>,
    queue: WorkQueue<Key>,
    recorder: Recorder,
    clock: Clock,
    graces: Graces,
    health: Mutex<HashMap<String, Health>>,
    zones: Mutex<Zones>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let leases = Filter::default().in_namespace(LEASE_NAMESPACE);
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            nodes: context.informers.get(),
            leases: context.informers.get_filtered(leases),
            pods: context.informers.get(),
            queue: WorkQueue::new(),
            recorder: context.recorder("node-controller"),
            clock: context.clock.clone(),
            graces: Graces {
                monitor: context.config.node_monitor_grace_period,
                startup: STARTUP_GRACE,
            },
            health: Mutex::default(),
            zones: Mutex::default(),
        });
        node_pods::index(&controller.pods);
        controller.watch();
        let synced = controller.nodes.synced().await
            && controller.leases.synced().await
            && controller.pods.synced().await;
        if !synced {
            return;
        }
        let queue = controller.queue.clone();
        let (nodes, pods) = (controller.nodes.clone(), controller.pods.clone());
        let recorder = controller.recorder.clone();
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling_of(recorder, move |key| match key {
                Key::Node(name) => {
                    let node = nodes.get(&ObjectKey::new("", name));
                    node.map(|node| reference(&*node))
                }
                Key::Pod(key) => pods.get(key).map(|pod| reference(&*pod)),
                Key::Zones => None, // It writes nothing.
            });
        control_loop::run(
            "node-lifecycle",
            queue,
            WORKERS,
            reconcile,
            context.shutdown,
        )
        .await;
    })
}

impl Controller {
    fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.nodes
            .on_change(move |change| told.node_changed(change));
        let told = Arc::clone(self);
        self.leases.on_change(move |change| {
            let now = told.clock.monotonic();
            let lease = change.object();
            let name = lease.metadata.name.as_deref().unwrap_or_default();
            if let Some(health) = told.health.lock().get_mut(name) {
                health.saw_lease(renewed(lease), now);
            }
        });
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
    }

    fn node_changed(&self, change: &Change<Node>) {
        let name = node::name(change.object()).to_owned();
        self.queue.add(Key::Node(name));
        let matters = match change {
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Updated { old, new } => zones::matters(old, new),
            Change::Resync(_) => false,
        };
        if matters {
            self.queue.add_after(Key::Zones, GATHER);
        }
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let pod = match change {
            Change::Added(pod) => pod,
            Change::Updated { old, new } if pods::node_name(old) != pods::node_name(new) => new,
            _ => return,
        };
        if pods::is_ready(pod) && self.is_on_lost_node(pod) {
            self.queue.add(Key::Pod(key_of(pod.as_ref())));
        }
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&ObjectKey::new("", name))
    }

    fn is_on_lost_node(&self, pod: &Pod) -> bool {
        self.node(pods::node_name(pod)).is_some_and(|node| {
            matches!(
                node::readiness(&node),
                Readiness::NotReady | Readiness::Unknown
            )
        })
    }

    async fn reconcile(&self, key: &Key) -> Result<Requeue, WriteError> {
        match key {
            Key::Node(name) => self.reconcile_node(name).await,
            Key::Zones => self.reconcile_zones().await,
            Key::Pod(key) => {
                if let Some(pod) = self.pods.get(key)
                    && self.is_on_lost_node(&pod)
                {
                    self.mark_pod(&pod).await?;
                }
                Ok(Requeue::Never)
            }
        }
    }

    async fn reconcile_node(&self, name: &str) -> Result<Requeue, WriteError> {
        let now = self.clock.monotonic();
        let node = self.node(name);
        self.introduce(name, node.as_deref(), now);
        let Some(node) = node else {
            return Ok(Requeue::Never);
        };
        let silence = self.listen(name, &node, now);
        if silence == Silence::TooLong
            && let Some(lost) = plan::lost(&node, &self.clock.time())
        {
            self.write_lost(&node, &lost).await?;
            return Ok(Requeue::Never); // The change comes back, and the rest follows from it.
        }
        if let Some(marked) = plan::marked(&node, &self.clock.time()) {
            self.write_node(&node, &marked).await?;
        }
        self.vouch_for_pods(name, &node).await?;
        Ok(match silence {
            Silence::Within(left) => Requeue::After(left),
            Silence::TooLong => Requeue::Never,
        })
    }

    /// Starts and ends the watch over a node, each with an event.
    fn introduce(&self, name: &str, node: Option<&Node>, now: Instant) {
        let uid = node.map(|node| node.metadata.uid.as_deref().unwrap_or_default());
        let mut health = self.health.lock();
        if let Some(known) = health.get(name).map(|health| health.uid.clone())
            && Some(known.as_str()) != uid
        {
            health.remove(name);
            self.tell_removed(name, &known);
        }
        if let Some(node) = node
            && !health.contains_key(name)
        {
            health.insert(name.to_owned(), Health::new(node, now));
            self.tell_registered(node);
        }
    }

    fn listen(&self, name: &str, node: &Node, now: Instant) -> Silence {
        let lease = self.leases.get(&ObjectKey::new(LEASE_NAMESPACE, name));
        let mut health = self.health.lock();
        let Some(health) = health.get_mut(name) else {
            return Silence::Within(self.graces.monitor);
        };
        if let Some(lease) = lease {
            health.saw_lease(renewed(&lease), now);
        }
        health.saw_status(node, now);
        health.silence(self.graces, now)
    }

    /// Nobody knows how the pods of a silent node are: they count as not ready.
    async fn vouch_for_pods(&self, name: &str, node: &Node) -> Result<(), WriteError> {
        let lost = node::readiness(node) == Readiness::Unknown;
        match self.health.lock().get_mut(name) {
            Some(health) if !lost => health.pods_marked = false,
            Some(health) if !health.pods_marked => {}
            _ => return Ok(()),
        }
        if lost {
            self.mark_pods(name).await?;
            if let Some(health) = self.health.lock().get_mut(name) {
                health.pods_marked = true;
            }
        }
        Ok(())
    }

    async fn reconcile_zones(&self) -> Result<Requeue, WriteError> {
        let now = self.clock.monotonic();
        let nodes = self.nodes.list();
        let pass = self.zones.lock().pass(&nodes, now);
        for (zone, state) in &pass.changes {
            tracing::info!(zone, ?state, "the state of a zone changed");
        }
        if pass.forgive {
            self.health.lock().values_mut().for_each(|it| it.reset(now));
        }
        self.write_taints(&pass).await?;
        Ok(pass.look_again.map_or(Requeue::Never, Requeue::After))
    }
}

fn renewed(lease: &Lease) -> Option<jiff::Timestamp> {
    let time = lease.spec.as_ref()?.renew_time.as_ref()?;
    Some(time.0)
}

#[cfg(test)]
mod tests;
