//! Gives Services of type LoadBalancer their addresses, where nobody else does: those of the nodes,
//! or one each from a pool.
//!
//! Reads Services, of which it keeps those of that type alone, Nodes, and EndpointSlices while a
//! Service asks for nodes with endpoints alone (`externalTrafficPolicy: Local`); writes
//! `status.loadBalancer` of Services without a class, when it changes. What an address leads to is the
//! nodes' own matter. With addresses of nodes a port belongs to the oldest Service that asks for it; another
//! one stays without until that goes, and is told so by an event. One key stands for all: who gets
//! what depends on the others.

use crate::{Context, refusal};
use coracle_client::clock::{Clock, Instant};
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
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;

mod backends; // Where Services have endpoints.
mod balanced; // What is kept of a Service.
mod grant; // Who gets what. Pure; start reading here.
mod local; // Nodes with endpoints alone.
mod places; // Nodes that take traffic.
mod pool;

pub use pool::{AddressPool, PoolError};

use backends::NodeNames;
use balanced::{Balanced, Known};
use grant::{Granted, Stage, grants};
use local::Lost;
use places::Place;

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
    /// Whether a Service asks where it has endpoints, and what is known of that.
    asked: watch::Sender<bool>,
    backends: backends::Shared,
    lost: Mutex<Lost>,
    pool: AddressPool,
    clock: Clock,
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
            asked: watch::Sender::new(false),
            backends: backends::Shared::default(),
            lost: Mutex::default(),
            clock: context.clock.clone(),
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
        let of_backends = backends::follow_while_asked(
            context.informers.clone(),
            controller.asked.subscribe(),
            controller.backends.clone(),
            (queue.clone(), all()),
            context.shutdown.clone(),
        );
        let reconcile =
            control_loop::with(controller, |it, _| Box::pin(it.reconcile())).telling_by_itself();
        let running = control_loop::run("load-balancer", queue, 1, reconcile, context.shutdown);
        tokio::join!(following, of_backends, running);
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
        let places = places::places(&self.nodes.list());
        let (local, until) = self.local(&known, &places);
        let stage = Stage {
            places: &places,
            local: &local,
            pool: &self.pool,
        };
        let granted = grants(&known, &stage);
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
                Granted::Unknown => continue,
            };
            if service.addresses != addresses
                && let Err(error) = self.write(key, service, addresses).await
            {
                let text = format!(
                    "Error syncing load balancer: {}",
                    refusal::message(&error.source)
                );
                self.fail(key, service, &text);
                failed = Some(error);
            }
        }
        let next = until.map_or(Requeue::Never, |until| {
            Requeue::After(until.saturating_duration_since(self.clock.monotonic()))
        });
        failed.map_or(Ok(next), Err)
    }

    /// The nodes that Services with endpoints on some alone name, and when to look again. None of a
    /// Service of which that is not known yet.
    fn local(
        &self,
        known: &Known,
        places: &[Place],
    ) -> (BTreeMap<ObjectKey, NodeNames>, Option<Instant>) {
        let services = known.services.iter();
        let services = services.filter(|(_, service)| self.pool.is_empty() && service.is_local);
        let mut services = services.peekable();
        let is_asked = services.peek().is_some();
        self.asked
            .send_if_modified(|asked| std::mem::replace(asked, is_asked) != is_asked);
        let (backends, mut lost) = (self.backends.lock(), self.lost.lock());
        let (mut local, mut until) = (BTreeMap::new(), None);
        let Some(backends) = &*backends else {
            return (local, until);
        };
        let ready = backends.by_service();
        let (now, none) = (self.clock.monotonic(), NodeNames::new());
        for (key, service) in services {
            let named = (places, service.addresses.as_slice());
            let of = lost.local(key, named, ready.get(key).unwrap_or(&none), now);
            until = until.into_iter().chain(of.until).min();
            local.insert(key.clone(), of.nodes);
        }
        lost.retain(|key| local.contains_key(key));
        (local, until)
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
            Ok(written) => self.known.lock().written(&written),
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
        self.fail(key, service, &text);
    }

    fn fail(&self, key: &ObjectKey, service: &Balanced, text: &str) {
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

#[cfg(test)]
mod tests;
