//! Keeps the Node's status current, its network up and its lease renewed.

use super::conditions::{self, Measures};
use super::facts::Facts;
use super::object;
use super::own_addresses::OwnAddresses;
use crate::Config;
use crate::csi::Csi;
use crate::network::Network;
use crate::pressure;
use crate::runtime::Runtime;
use coracle_client::Client;
use coracle_client::clock::{Clock, Instant, seconds};
use coracle_client::events::{EventType, Recorder};
use coracle_client::informer::Informer;
use coracle_client::key_of;
use coracle_client::lease::NodeLease;
use coracle_client::patch::merge_difference;
use coracle_client::pod_cidrs::pod_cidrs;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use rand::RngExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Upstream's periods: how often the node looks at itself, and how often it says so in any case.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const REPORT_EVERY: Duration = Duration::from_secs(5 * 60);

pub struct Heartbeat {
    pub client: Client,
    pub config: Config,
    pub facts: Facts,
    pub addresses: OwnAddresses,
    pub runtime: Arc<dyn Runtime>,
    pub network: Arc<Network>,
    pub recorder: Recorder,
    pub clock: Clock,
    pub pressures: pressure::Conditions,
    pub csi: Arc<Csi>,
    /// Of this Node alone.
    pub informer: Informer<Node>,
}

/// What was last said of the node.
#[derive(Debug, Default)]
struct Told {
    /// The Node was there.
    is_known: bool,
    report: Option<Instant>,
    unschedulable: bool,
}

impl std::fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heartbeat").finish_non_exhaustive()
    }
}

impl Heartbeat {
    pub async fn run(self, stop: CancellationToken) {
        let mut pressures = self.pressures.clone();
        let mut addresses = self.addresses.subscribe();
        let changed = Arc::new(Notify::new());
        let wake = changed.clone();
        self.informer.on_change(move |_| wake.notify_one());
        self.event("Starting", "Starting kubelet.");
        let begun = self.clock.monotonic();
        let mut told = Told::default();
        loop {
            if let Err(error) = self.look(begun, &mut told).await {
                tracing::warn!(%error, "the node's status is not reported");
            }
            let jitter = rand::rng().random_range(0.95..1.05);
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed.notified() => {}
                () = pressures.changed() => {}
                Ok(()) = addresses.changed() => {}
                () = self.csi.in_use_changed() => {}
                () = tokio::time::sleep(LOOK_EVERY.mul_f64(jitter)) => {}
            }
        }
    }

    async fn look(&self, begun: Instant, told: &mut Told) -> Result<(), kube::Error> {
        let name = &self.config.node_name;
        let key = coracle_client::ObjectKey::new("", name);
        let Some(node) = self.informer.get(&key) else {
            // What was registered just now may still be on its way.
            let is_gone = told.is_known || begun.elapsed() >= LOOK_EVERY;
            if self.informer.has_synced() && is_gone {
                tracing::info!("the node was deleted from the server; registers again");
                let again = super::register(&self.client, &self.config, &self.facts, false).await;
                if let Err(error) = again {
                    tracing::warn!(%error, "cannot register the node again");
                }
                told.report = None;
            }
            return Ok(());
        };
        debug_assert_eq!(key_of(node.as_ref()), key);
        told.is_known = true;
        self.use_network(&node).await;
        self.tell_schedulable(&node, told);
        let old = node.status.clone().unwrap_or_default();
        let new = self.status(&old).await;
        let is_due = told
            .report
            .is_none_or(|last| last.elapsed() >= REPORT_EVERY);
        let Some(body) = difference(&old, &new, is_due) else {
            return Ok(());
        };
        self.tell(&old, &new);
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Strategic(json!({ "status": body }));
        api.patch_status(name, &PatchParams::default(), &patch)
            .await?;
        told.report = Some(self.clock.monotonic());
        Ok(())
    }

    async fn use_network(&self, node: &Node) {
        let cidrs: Vec<_> = pod_cidrs(node).collect();
        if cidrs.is_empty() {
            return;
        }
        let cidrs = cidrs.join(",");
        match self.network.use_cidrs(&cidrs).await {
            Ok(false) => {}
            Ok(true) => {
                if let Err(error) = self.runtime.use_pod_cidrs(&cidrs).await {
                    tracing::error!(cidrs, %error, "the runtime does not take the podCIDR");
                    self.network.untold();
                }
            }
            Err(error) => {
                let error = crate::error::chain(&error);
                tracing::error!(cidrs, error, "the pods' network does not come up");
            }
        }
    }

    async fn status(&self, old: &NodeStatus) -> NodeStatus {
        let images = self.runtime.list_images().await.unwrap_or_default();
        let (name, version) = (&self.config.node_name, self.runtime.version());
        let mut status = object::status(
            name,
            self.addresses.all(),
            &self.facts,
            &self.config.resources,
            &version,
            &images,
        );
        object::keep_extended(&mut status, old);
        object::keep_foreign_addresses(&mut status, old);
        if let Some(joining) = &self.config.joining {
            status.daemon_endpoints = Some(object::endpoints(joining.port));
        }
        let measures = Measures {
            pressures: self.pressures.now(),
            problem: self.problem().await,
        };
        let before = old.conditions.as_deref().unwrap_or_default();
        let now = seconds(self.clock.now());
        status.conditions = Some(conditions::make(&measures, before, now));
        let in_use = self.csi.in_use();
        if !in_use.is_empty() || old.volumes_in_use.is_some() {
            status.volumes_in_use = Some(in_use);
        }
        status
    }

    /// Why the node is not ready, in upstream's words.
    async fn problem(&self) -> Option<String> {
        let health = self.runtime.health().await;
        self.network.heard(health.network);
        match (health.runtime, self.network.problem()) {
            (Some(runtime), Some(network)) => Some(format!("[{runtime}, {network}]")),
            (runtime, network) => runtime.or(network),
        }
    }

    /// An event for a cordon, and for its end.
    fn tell_schedulable(&self, node: &Node, told: &mut Told) {
        let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        if unschedulable == std::mem::replace(&mut told.unschedulable, unschedulable) {
            return;
        }
        let reason = if unschedulable {
            "NodeNotSchedulable"
        } else {
            "NodeSchedulable"
        };
        let name = &self.config.node_name;
        self.event(reason, &format!("Node {name} status is now: {reason}"));
    }

    /// An event for every condition that turned.
    fn tell(&self, old: &NodeStatus, new: &NodeStatus) {
        let before = old.conditions.as_deref().unwrap_or_default();
        for condition in new.conditions.iter().flatten() {
            let known = before.iter().find(|known| known.type_ == condition.type_);
            let has_turned = known.is_none_or(|known| known.status != condition.status);
            let holds = condition.status == "True";
            let reason = match (condition.type_.as_str(), holds) {
                ("Ready", true) => "NodeReady",
                ("Ready", false) => "NodeNotReady",
                ("MemoryPressure", true) => "NodeHasInsufficientMemory",
                ("MemoryPressure", false) => "NodeHasSufficientMemory",
                ("DiskPressure", true) => "NodeHasDiskPressure",
                ("DiskPressure", false) => "NodeHasNoDiskPressure",
                ("PIDPressure", true) => "NodeHasInsufficientPID",
                ("PIDPressure", false) => "NodeHasSufficientPID",
                _ => continue,
            };
            if has_turned {
                let name = &self.config.node_name;
                self.event(reason, &format!("Node {name} status is now: {reason}"));
            }
        }
    }

    fn event(&self, reason: &str, message: &str) {
        let object = super::reference(&self.config.node_name);
        self.recorder
            .event(&object, EventType::Normal, reason, message);
    }
}

/// What to patch; None when nothing changed and nothing is due. Times alone are no change.
fn difference(old: &NodeStatus, new: &NodeStatus, is_due: bool) -> Option<Value> {
    let split = |status: &NodeStatus| {
        let mut status = status.clone();
        let conditions = status.conditions.take().unwrap_or_default();
        (serde_json::to_value(status).unwrap_or_default(), conditions)
    };
    let (old, old_conditions) = split(old);
    let (new, new_conditions) = split(new);
    let without_time = |condition: &NodeCondition| NodeCondition {
        last_heartbeat_time: None,
        ..condition.clone()
    };
    let has_turned = new_conditions.iter().any(|condition| {
        let known = old_conditions
            .iter()
            .find(|known| known.type_ == condition.type_);
        known.is_none_or(|known| without_time(known) != without_time(condition))
    });
    // What others wrote there is not ours to remove.
    let mut changed = merge_difference(&old, &new);
    if let Some(Value::Object(changed)) = &mut changed {
        changed.retain(|_, value| !value.is_null());
    }
    let changed = changed.filter(|changed| changed.as_object().is_some_and(|map| !map.is_empty()));
    if changed.is_none() && !has_turned && !is_due {
        return None;
    }
    let mut body = changed.unwrap_or_else(|| json!({}));
    if let Some(addresses) = body.get_mut("addresses").and_then(Value::as_array_mut) {
        // They are merged by type else, and a node may have two of one.
        addresses.push(json!({ "$patch": "replace" }));
    }
    if has_turned || is_due {
        body["conditions"] = serde_json::to_value(new_conditions).unwrap_or_default();
    }
    Some(body)
}

/// Renews the node's lease.
#[derive(Debug)]
pub struct Lease;

impl Lease {
    /// The first pause after a failed renewal, and the longest, as upstream has them.
    const RETRY_FIRST: Duration = Duration::from_millis(200);
    const RETRY_LONGEST: Duration = Duration::from_secs(7);

    pub async fn run(mut lease: NodeLease, informer: Informer<Node>, stop: CancellationToken) {
        let mut pause = Self::RETRY_FIRST;
        let mut is_late = false;
        loop {
            let node = informer.list().into_iter().next();
            if let Some(uid) = node.as_ref().and_then(|node| node.metadata.uid.as_deref()) {
                lease.set_node_uid(uid);
            }
            let rest = match lease.renew().await {
                Ok(()) => {
                    if is_late {
                        tracing::info!("the server is back; the lease is renewed");
                    }
                    is_late = false;
                    pause = Self::RETRY_FIRST;
                    NodeLease::RENEW_INTERVAL
                }
                Err(error) => {
                    if !is_late {
                        tracing::warn!(%error, "the lease is not renewed");
                    }
                    is_late = true;
                    let rest = pause;
                    pause = (pause * 2).min(Self::RETRY_LONGEST);
                    rest
                }
            };
            let jitter = rand::rng().random_range(0.96..1.04);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(rest.mul_f64(jitter)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
