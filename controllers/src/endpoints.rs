//! Keeps the Endpoints of every Service that selects pods: its addresses in the form of old.
//!
//! Reads Services, pods, and the metadata of Endpoints; asks the server for the one object it
//! compares with. Writes Endpoints of a Service's name, and deletes those whose Service is gone.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::patch;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Endpoints, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::core::PartialObjectMeta;

use crate::services::{self, Service};
use crate::trigger_time::TriggerTimes;
use crate::{Context, refusal};

mod plan; // Pure. Start reading here.

/// Upstream's name of the component, which events and the label of what it made carry.
const COMPONENT: &str = "endpoint-controller";
/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;
/// On Endpoints in which electors of old keep their leader: they have no Service.
pub(crate) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Endpoints as their watch shows them.
pub(crate) type EndpointsMeta = PartialObjectMeta<Endpoints>;

pub(crate) fn is_of_election(endpoints: &EndpointsMeta) -> bool {
    let annotations = endpoints.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(LEADER))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    #[error("cannot read the Endpoints {key}")]
    Read { key: ObjectKey, source: kube::Error },
    #[error("cannot create the Endpoints {key}")]
    Create { key: ObjectKey, source: kube::Error },
    #[error("cannot update the Endpoints {key}")]
    Update { key: ObjectKey, source: kube::Error },
    #[error("cannot delete the Endpoints {key}")]
    Delete { key: ObjectKey, source: kube::Error },
}

struct Controller {
    client: Client,
    services: Informer<Service>,
    pods: Informer<Pod>,
    endpoints: Informer<EndpointsMeta>,
    queue: WorkQueue<ObjectKey>,
    trigger_times: TriggerTimes,
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
        endpoints: context.informers.get(),
        queue: WorkQueue::new(),
        trigger_times: TriggerTimes::default(),
        recorder: context.recorder(COMPONENT),
    });
    controller.follow();
    let synced = controller.services.synced().await
        && controller.pods.synced().await
        && controller.endpoints.synced().await;
    if !synced {
        return;
    }
    // Those whose Service went while nobody looked.
    for left in controller.endpoints.list() {
        if !is_of_election(&left) {
            controller.queue.add(key_of(left.as_ref()));
        }
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.services.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run("endpoints", queue, WORKERS, reconcile, context.shutdown).await;
}

impl Controller {
    fn follow(self: &Arc<Self>) {
        services::follow(&self.services, &self.pods, &self.queue);
        let told = Arc::clone(self);
        self.endpoints.on_change(move |change| {
            if let Change::Deleted(endpoints) = change {
                told.queue.add(key_of(endpoints.as_ref()));
            }
        });
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let api = Api::<Endpoints>::namespaced(self.client.clone(), &key.namespace);
        let Some(service) = self.services.get(key) else {
            self.trigger_times.forget(key);
            return match api.delete(&key.name, &DeleteParams::default()).await {
                Err(source) if !refusal::is_not_found(&source) => {
                    let key = key.clone();
                    Err(ReconcileError::Delete { key, source })
                }
                _ => Ok(Requeue::Never),
            };
        };
        if service.is_external_name() || service.selector().is_none() {
            return Ok(Requeue::Never); // Somebody else says where it leads.
        }
        let pods = services::pods_of(&service, &self.pods);
        let current = api.get_opt(&key.name).await.map_err(|source| {
            let key = key.clone();
            ReconcileError::Read { key, source }
        })?;
        let changed_at = self.trigger_times.next(key, &service, &pods);
        let subsets = plan::subsets(&service, &pods);
        if let Some(next) = plan::next(current.as_ref(), &service, subsets, changed_at) {
            self.write(&api, key, current.is_none(), &next).await?;
        }
        Ok(Requeue::Never)
    }

    async fn write(
        &self,
        api: &Api<Endpoints>,
        key: &ObjectKey,
        is_new: bool,
        next: &Endpoints,
    ) -> Result<(), ReconcileError> {
        let written = if is_new {
            api.create(&PostParams::default(), next).await
        } else {
            patch::replace(api, next).await
        };
        let source = match written {
            Ok(_) => return Ok(()),
            Err(error) if is_new && refusal::is_namespace_terminating(&error) => return Ok(()),
            Err(source) => source,
        };
        let (reason, what) = if is_new {
            ("FailedToCreateEndpoint", "create endpoint for service")
        } else {
            ("FailedToUpdateEndpoint", "update endpoint")
        };
        let message = format!("Failed to {what} {key}: {}", refusal::message(&source));
        let about = events::reference(next);
        self.recorder
            .event(&about, EventType::Warning, reason, message);
        let key = key.clone();
        Err(if is_new {
            ReconcileError::Create { key, source }
        } else {
            ReconcileError::Update { key, source }
        })
    }
}

#[cfg(test)]
mod tests;
