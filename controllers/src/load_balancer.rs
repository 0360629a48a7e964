//! Gives Services of type LoadBalancer their addresses, where nobody else does: those of the nodes,
//! or one each from a pool.
//!
//! Reads Services, of which it keeps those of that type alone, and Nodes; writes
//! `status.loadBalancer` of Services without a class. What an address leads to is the nodes' own
//! matter. With addresses of nodes a port belongs to the oldest Service that asks for it; another
//! one stays without until that goes, and is told so by an event. One key stands for all: who gets
//! what depends on the others.

use crate::{Context, nodes};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder};
use coracle_client::informer::{Event, Filter, Informer, follow};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Service};
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

mod balanced; // What is kept of a Service.
mod grant; // Who gets what. Pure; start reading here.
mod pool;

pub use pool::{AddressPool, PoolError};

use balanced::{Balanced, Known};
use grant::{Granted, grants};

/// Nodes with it get no traffic from load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// A taint of those that the cluster autoscaler is about to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

#[derive(Debug, thiserror::Error)]
#[error("cannot tell the Service {service} its address")]
pub(crate) struct TellError {
    service: ObjectKey,
    source: kube::Error,
}

struct Controller {
    client: Client,
    nodes: Informer<Node>,
    known: Arc<Mutex<Known>>,
    pool: AddressPool,
    recorder: Recorder,
    /// Who was told that a port is taken, and by whom.
    told: Mutex<BTreeMap<ObjectKey, ObjectKey>>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            nodes: context.informers.get(),
            known: Arc::default(),
            pool: context.config.load_balancer_pool.clone(),
            recorder: context.recorder("service-controller"),
            told: Mutex::default(),
        });
        let added = queue.clone();
        controller.nodes.on_change(move |_| added.add(all()));
        if !controller.nodes.synced().await {
            return;
        }
        let sink = sink(controller.known.clone(), queue.clone());
        let (client, stop) = (context.client.clone(), context.shutdown.clone());
        let following = follow::<Service>(client, Filter::default(), sink, stop);
        let reconcile = control_loop::with(controller, |it, _| Box::pin(it.reconcile()));
        let running = control_loop::run("load-balancer", queue, 1, reconcile, context.shutdown);
        tokio::join!(following, running);
    })
}

fn all() -> ObjectKey {
    ObjectKey::new("", "all")
}

/// Nothing is asked for until a list is whole: who is oldest is not known before.
fn sink(
    known: Arc<Mutex<Known>>,
    queue: WorkQueue<ObjectKey>,
) -> impl FnMut(Event<Service>) + Send {
    let mut listed: Option<Known> = None;
    move |event| {
        let has_changed = match event {
            Event::Init => {
                listed = Some(Known::default());
                false
            }
            Event::InitApply(service) => {
                if let Some(listed) = &mut listed {
                    listed.set(&service);
                }
                false
            }
            Event::InitDone => {
                *known.lock() = listed.take().unwrap_or_default();
                true
            }
            Event::Apply(service) => known.lock().set(&service),
            Event::Delete(service) => known.lock().remove(&service),
        };
        if has_changed {
            queue.add(all());
        }
    }
}

impl Controller {
    async fn reconcile(&self) -> Result<Requeue, TellError> {
        let known = self.known.lock().clone();
        let services = &known.services;
        let granted = grants(&known, &self.addresses(), &self.pool);
        self.told.lock().retain(|key, _| services.contains_key(key));
        let mut failed = None;
        for (key, granted) in &granted {
            let service = &services[key];
            let addresses = match granted {
                Granted::Addresses(addresses) => {
                    self.told.lock().remove(key);
                    addresses.as_slice()
                }
                Granted::Taken { by } => {
                    self.tell(key, service, by);
                    &[]
                }
                Granted::None => &[],
            };
            if service.addresses != addresses
                && let Err(error) = self.write(key, service, addresses).await
            {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(Requeue::Never), Err)
    }

    /// Of the nodes that take traffic, in the order of their names.
    fn addresses(&self) -> Vec<IpAddr> {
        let nodes = self.nodes.list();
        let all = nodes.iter().filter(|node| takes_traffic(node));
        let mut seen = BTreeSet::new();
        let all = all.flat_map(|node| addresses(node));
        all.filter(|address| seen.insert(*address)).collect()
    }

    async fn write(
        &self,
        key: &ObjectKey,
        service: &Balanced,
        addresses: &[IpAddr],
    ) -> Result<(), TellError> {
        let ingress: Vec<_> = addresses
            .iter()
            .map(|address| json!({ "ip": address.to_string(), "ipMode": "VIP" }))
            .collect();
        let balancer = if ingress.is_empty() {
            json!({ "ingress": null })
        } else {
            json!({ "ingress": ingress })
        };
        let patch = json!({
            "metadata": { "uid": service.uid },
            "status": { "loadBalancer": balancer },
        });
        let api: Api<Service> = Api::namespaced(self.client.clone(), &key.namespace);
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        match api.patch_status(&key.name, &params, &patch).await {
            Ok(_) => {}
            // Its deletion is on the way to us.
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(source) => {
                return Err(TellError {
                    service: key.clone(),
                    source,
                });
            }
        }
        if !addresses.is_empty() {
            let (kind, text) = (EventType::Normal, "Ensured load balancer");
            let object = reference(key, service);
            self.recorder
                .event(&object, kind, "EnsuredLoadBalancer", text);
        }
        Ok(())
    }

    /// Once, as long as it is the same one that has the port.
    fn tell(&self, key: &ObjectKey, service: &Balanced, by: &ObjectKey) {
        let before = self.told.lock().insert(key.clone(), by.clone());
        if before.as_ref() == Some(by) {
            return;
        }
        let text = format!(
            "Error syncing load balancer: the Service {by} has one of its ports on the nodes' addresses"
        );
        let object = reference(key, service);
        let reason = "SyncLoadBalancerFailed";
        self.recorder
            .event(&object, EventType::Warning, reason, text);
    }
}

fn reference(key: &ObjectKey, service: &Balanced) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Service".to_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: Some(service.uid.clone()),
        ..ObjectReference::default()
    }
}

/// It is ready, stays, and nobody keeps traffic from it.
fn takes_traffic(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let is_excluded = labels.is_some_and(|labels| labels.contains_key(EXCLUDED));
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let goes = taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == TO_BE_DELETED));
    let stays = node.metadata.deletion_timestamp.is_none() && !goes;
    nodes::is_ready(node) && !is_excluded && stays
}

/// Those that are known outside, or else those within.
fn addresses(node: &Node) -> Vec<IpAddr> {
    let status = node.status.as_ref();
    let all = status.and_then(|status| status.addresses.as_ref());
    let of = |kind: &str| -> Vec<IpAddr> {
        let all = all.into_iter().flatten();
        let all = all.filter(|address| address.type_ == kind);
        all.filter_map(|address| address.address.parse().ok())
            .collect()
    };
    let outside = of("ExternalIP");
    if outside.is_empty() {
        of("InternalIP")
    } else {
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::{EXCLUDED, TO_BE_DELETED, takes_traffic};
    use k8s_openapi::api::core::v1::Node;
    use serde_json::{Value, json};

    fn node(ready: &str, metadata: Value, taint: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": metadata,
            "spec": { "taints": [{ "key": taint, "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    #[test]
    fn traffic_goes_to_nodes_that_are_ready_and_stay() {
        assert!(takes_traffic(&node("True", json!({}), "dedicated")));
        assert!(!takes_traffic(&node("False", json!({}), "dedicated")));
        assert!(!takes_traffic(&node("True", json!({}), TO_BE_DELETED)));
        let excluded = json!({ "labels": { EXCLUDED: "" } });
        assert!(!takes_traffic(&node("True", excluded, "dedicated")));
        let going = json!({ "deletionTimestamp": "2026-06-01T00:00:00Z" });
        assert!(!takes_traffic(&node("True", going, "dedicated")));
    }
}
