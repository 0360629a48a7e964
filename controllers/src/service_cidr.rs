//! Looks after the networks that Services get their addresses from: says when one is ready, and
//! keeps one that is deleted until no address needs it.
//!
//! Reads ServiceCIDRs and IPAddresses; writes finalizers and `status` of ServiceCIDRs. Never gives
//! out or takes back an address: the API server does, and looks for lost ones itself.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Context, refusal};

mod plan; // Pure. Start reading here.
mod prefix;

use plan::Plan;

/// Upstream's `--concurrent-service-cidr-syncs` is not settable either.
const WORKERS: usize = 5;
const LOOP: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        networks: context.informers.get(),
        addresses: context.informers.get(),
        queue: WorkQueue::new(),
        recorder: context.recorder(LOOP),
        clock: context.clock.clone(),
    });
    controller.watch();
    if !controller.networks.synced().await || !controller.addresses.synced().await {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.networks.clone(), controller.recorder.clone());
    let passes = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(LOOP, queue, WORKERS, passes, context.shutdown).await;
}

struct Controller {
    client: Client,
    networks: Informer<ServiceCIDR>,
    addresses: Informer<IPAddress>,
    queue: WorkQueue<ObjectKey>,
    recorder: Recorder,
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot write the finalizer")]
    Finalizer(#[source] kube::Error),
    #[error("cannot write the condition")]
    Condition(#[source] kube::Error),
}

impl Controller {
    fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.networks.on_change(move |change| {
            let network = change.object();
            told.queue.add(key_of(network.as_ref()));
            if matches!(change, Change::Added(_)) {
                // Those that waited for somebody to take their addresses over.
                for other in plan::overlapping(network, &told.networks.list()) {
                    told.queue.add(key_of(other.as_ref()));
                }
            }
        });
        let told = Arc::clone(self);
        self.addresses.on_change(move |change| {
            if matches!(change, Change::Updated { .. } | Change::Resync(_)) {
                return; // What it is of does not change, and networks are looked at again anyway.
            }
            if let Some(address) = plan::given_out(change.object()) {
                for network in plan::containing(address, &told.networks.list()) {
                    told.queue.add(key_of(network.as_ref()));
                }
            }
        });
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(network) = self.networks.get(key) else {
            return Ok(Requeue::Never);
        };
        let addresses = || -> BTreeSet<IpAddr> {
            let all = self.addresses.list();
            all.iter().filter_map(|one| plan::given_out(one)).collect()
        };
        match plan::plan(&network, &self.networks.list(), addresses, self.clock.now()) {
            Plan::Keep => {
                self.keep(&network).await?;
                self.show(&network, &plan::READY).await?;
            }
            Plan::Wait => self.show(&network, &plan::IN_USE).await?,
            Plan::LetGoIn(wait) if wait > Duration::ZERO => return Ok(Requeue::After(wait)),
            Plan::LetGoIn(_) => self.let_go(&network).await?,
        }
        Ok(Requeue::Never)
    }

    async fn keep(&self, network: &ServiceCIDR) -> Result<(), ReconcileError> {
        if has_finalizer(network) {
            return Ok(());
        }
        self.patch(network, json!({ "finalizers": [FINALIZER] }))
            .await
    }

    async fn let_go(&self, network: &ServiceCIDR) -> Result<(), ReconcileError> {
        if !has_finalizer(network) {
            return Ok(());
        }
        let list = json!({ "$deleteFromPrimitiveList/finalizers": [FINALIZER] });
        self.patch(network, list).await
    }

    async fn patch(&self, network: &ServiceCIDR, mut meta: Value) -> Result<(), ReconcileError> {
        meta["uid"] = json!(network.metadata.uid);
        let patch = Patch::Strategic(json!({ "metadata": meta }));
        let name = network.metadata.name.as_deref().unwrap_or_default();
        let networks: Api<ServiceCIDR> = Api::all(self.client.clone());
        match networks.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => Err(ReconcileError::Finalizer(error)),
        }
    }

    /// Applied, so that other conditions stay whose they are.
    async fn show(&self, network: &ServiceCIDR, told: &plan::Told) -> Result<(), ReconcileError> {
        if plan::is_told(network, told) {
            return Ok(());
        }
        let name = network.metadata.name.as_deref().unwrap_or_default();
        let wanted = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": name, "uid": network.metadata.uid},
            "status": {"conditions": [{
                "type": plan::CONDITION, "status": told.status, "reason": told.reason,
                "message": told.message, "lastTransitionTime": self.clock.time(),
            }]},
        });
        let networks: Api<ServiceCIDR> = Api::all(self.client.clone());
        let parameters = PatchParams::apply(LOOP).force();
        let wanted = Patch::Apply(wanted);
        match networks.patch_status(name, &parameters, &wanted).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => {
                if told.status == "True" {
                    let text = "The ServiceCIDR Status can not be set to Ready=True";
                    let about = events::reference(network);
                    let reason = "KubernetesServiceCIDRError";
                    self.recorder
                        .event(&about, EventType::Warning, reason, text);
                }
                Err(ReconcileError::Condition(error))
            }
        }
    }
}

fn has_finalizer(network: &ServiceCIDR) -> bool {
    let finalizers = network.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|one| one == FINALIZER)
}

#[cfg(test)]
mod tests;
