//! Gives pods the ResourceClaims that they want made from templates, and takes claims back from
//! pods that will not run any more.
//!
//! Reads pods, ResourceClaims and ResourceClaimTemplates; makes and deletes claims that belong to
//! pods, writes `status` and finalizers of claims and `status.resourceClaimStatuses` of pods. Never
//! allocates a device: the scheduler does.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{Recorder, reference};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use parking_lot::Mutex;

use crate::Context;

mod plan; // Pure. Start reading here.

pub(crate) use plan::{Named, claims, is_for, named, statuses};

mod give;
mod take_back;
mod watch;

const WORKERS: usize = 10;
const LOOP: &str = "resourceclaim-controller";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "resource_claim";
/// Upstream's field manager of what pods are told.
const MANAGER: &str = "ResourceClaimController";
/// Indexes of pods by what they name.
const BY_CLAIM: &str = "resource-claim";
const BY_TEMPLATE: &str = "resource-claim-template";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        pods: context.informers.get(),
        claims: context.informers.get(),
        templates: context.informers.get(),
        queue: WorkQueue::new(),
        made: Mutex::default(),
        recorder: context.recorder(COMPONENT),
    });
    controller.pods.add_index(BY_CLAIM, plan::claims_named);
    controller
        .pods
        .add_index(BY_TEMPLATE, plan::templates_named);
    controller.watch();
    let synced = controller.pods.synced().await
        && controller.claims.synced().await
        && controller.templates.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (pods, claims) = (controller.pods.clone(), controller.claims.clone());
    let recorder = controller.recorder.clone();
    let passes = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key))).telling_of(
        recorder,
        move |key| match key {
            Key::Pod(key) => pods.get(key).map(|pod| reference(&*pod)),
            Key::Claim(key) => claims.get(key).map(|claim| reference(&*claim)),
        },
    );
    control_loop::run(LOOP, queue, WORKERS, passes, context.shutdown).await;
}

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Pod(ObjectKey),
    Claim(ObjectKey),
}

impl Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "pod {key}"),
            Self::Claim(key) => write!(f, "claim {key}"),
        }
    }
}

struct Controller {
    client: Client,
    pods: Informer<Pod>,
    claims: Informer<ResourceClaim>,
    templates: Informer<ResourceClaimTemplate>,
    queue: WorkQueue<Key>,
    /// Claims that were made and that the cache may not show yet, by the uid of their pod. Bounded
    /// by the pods there are.
    made: Mutex<HashMap<String, BTreeMap<String, Arc<ResourceClaim>>>>,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("PodResourceClaim {claim}: {why}")]
    Make { claim: String, why: String },
    #[error("cannot tell the pod of its claims")]
    Tell(#[source] kube::Error),
    #[error("cannot reserve the claim {0}")]
    Reserve(String, #[source] kube::Error),
    #[error("cannot look for the pod {0}")]
    Look(String, #[source] kube::Error),
    #[error("cannot take the claim back")]
    TakeBack(#[source] kube::Error),
    #[error("cannot delete the claim that nobody uses")]
    Delete(#[source] kube::Error),
}

impl Controller {
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        match key {
            Key::Pod(key) => self.give(key).await?,
            Key::Claim(key) => self.take_back(key).await?,
        }
        Ok(Requeue::Never)
    }
}

#[cfg(test)]
mod tests;
