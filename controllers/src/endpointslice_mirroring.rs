//! Mirrors Endpoints that people write, for Services without a selector, into EndpointSlices.
//!
//! Reads Services, and the metadata of Endpoints and slices; asks the server for the objects it
//! compares. Writes slices and nothing else. Endpoints with the label
//! `endpointslice.kubernetes.io/skip-mirror: "true"` or of an election of leaders are left alone.

use std::sync::Arc;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{self, EventType, Recorder};
use coracle_client::informer::{Change, Informer};
use coracle_client::patch;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;

use crate::endpoint_slices::{self, STALE_WAIT, SliceMeta, Tracker, Writer, label};
use crate::endpoints::{EndpointsMeta, is_of_election};
use crate::services::Service;
use crate::{Context, refusal};

mod plan; // Pure. Start reading here.

/// Names this controller on its slices.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "endpoint-slice-mirroring-controller";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Upstream has 5, for larger machines: few Services have Endpoints that people write.
const WORKERS: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    #[error("cannot read the Endpoints {key}")]
    ReadEndpoints { key: ObjectKey, source: kube::Error },
    #[error("cannot read the slices of {key}")]
    ReadSlices { key: ObjectKey, source: kube::Error },
    #[error("cannot create a slice of {key}")]
    Create { key: ObjectKey, source: kube::Error },
    #[error("cannot update a slice of {key}")]
    Update { key: ObjectKey, source: kube::Error },
    #[error("cannot delete a slice of {key}")]
    Delete { key: ObjectKey, source: kube::Error },
}

struct Controller {
    client: Client,
    services: Informer<Service>,
    endpoints: Informer<EndpointsMeta>,
    slices: Informer<SliceMeta>,
    queue: WorkQueue<ObjectKey>,
    tracker: Tracker,
    recorder: Recorder,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        services: context.informers.get(),
        endpoints: context.informers.get(),
        slices: context.informers.get(),
        queue: WorkQueue::new(),
        tracker: Tracker::default(),
        recorder: context.recorder(COMPONENT),
    });
    controller.follow();
    let synced = controller.services.synced().await
        && controller.endpoints.synced().await
        && controller.slices.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.services.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    let name = "endpointslice-mirroring";
    control_loop::run(name, queue, WORKERS, reconcile, context.shutdown).await;
}

fn is_mirrored(endpoints: &EndpointsMeta) -> bool {
    label(&endpoints.metadata, SKIP) != Some("true") && !is_of_election(endpoints)
}

impl Controller {
    fn follow(self: &Arc<Self>) {
        endpoint_slices::index(&self.slices);
        let told = Arc::clone(self);
        self.endpoints.on_change(move |change| {
            let was_mirrored = match change {
                Change::Updated { old, .. } => is_mirrored(old),
                _ => false,
            };
            if was_mirrored || is_mirrored(change.object()) {
                told.queue.add(key_of(change.object().as_ref()));
            }
        });
        let told = Arc::clone(self);
        self.services.on_change(move |change| {
            let new = change.object();
            let counts = match change {
                Change::Updated { old, .. } => old.selector().is_none() != new.selector().is_none(),
                _ => new.selector().is_none(),
            };
            if counts {
                told.queue.add(key_of(new.as_ref()));
            }
        });
        let told = Arc::clone(self);
        self.slices.on_change(move |change| {
            for key in endpoint_slices::touched(&told.tracker, MANAGER, change) {
                told.queue.add(key);
            }
        });
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, MirrorError> {
        let known = endpoint_slices::of_service(&self.slices, key, MANAGER);
        let endpoints = self.endpoints.get(key);
        let service = self.services.get(key);
        let is_wanted = endpoints.is_some_and(|endpoints| is_mirrored(&endpoints))
            && service.is_some_and(|service| service.selector().is_none());
        if !is_wanted {
            self.tracker.forget(key);
            return self.delete_all(key, &known).await;
        }
        if self.tracker.is_stale(key, &known) {
            return Ok(Requeue::After(STALE_WAIT));
        }
        let read_failed = |source| MirrorError::ReadSlices {
            key: key.clone(),
            source,
        };
        let existing = endpoint_slices::read(&self.client, &key.namespace, &known).await;
        let api = Api::<Endpoints>::namespaced(self.client.clone(), &key.namespace);
        let endpoints = api.get_opt(&key.name).await.map_err(|source| {
            let key = key.clone();
            MirrorError::ReadEndpoints { key, source }
        })?;
        let (Some(endpoints), Some(existing)) = (endpoints, existing.map_err(read_failed)?) else {
            return Ok(Requeue::After(STALE_WAIT));
        };
        let plan = plan::plan(&endpoints, existing);
        let about = events::reference(&endpoints);
        for event in &plan.events {
            self.recorder
                .event(&about, EventType::Warning, event.reason, &*event.message);
        }
        for slice in &plan.in_order {
            self.tracker.found(slice);
        }
        self.execute(key, &endpoints, plan).await?;
        Ok(Requeue::Never)
    }

    /// Creations, then updates, then deletions.
    async fn execute(
        &self,
        key: &ObjectKey,
        endpoints: &Endpoints,
        plan: plan::Plan,
    ) -> Result<(), MirrorError> {
        let writer = Writer::new(&self.client, &key.namespace, &self.tracker);
        let is_going = endpoints.metadata.deletion_timestamp.is_some();
        for slice in plan.create.iter().filter(|_| !is_going) {
            let created = writer.create(slice).await.map_err(|source| {
                let key = key.clone();
                MirrorError::Create { key, source }
            })?;
            if !created {
                return Ok(());
            }
        }
        for slice in &plan.update {
            writer.update(slice).await.map_err(|source| {
                let key = key.clone();
                MirrorError::Update { key, source }
            })?;
        }
        for slice in &plan.delete {
            writer.delete(slice).await.map_err(|source| {
                let key = key.clone();
                MirrorError::Delete { key, source }
            })?;
        }
        Ok(())
    }

    async fn delete_all(
        &self,
        key: &ObjectKey,
        known: &[Arc<SliceMeta>],
    ) -> Result<Requeue, MirrorError> {
        let slices = Api::<EndpointSlice>::namespaced(self.client.clone(), &key.namespace);
        let mut failure = None;
        for slice in known {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            let exactly = patch::delete_exactly(slice.as_ref());
            match slices.delete(name, &exactly).await {
                Err(error) if !refusal::is_not_found(&error) => failure = failure.or(Some(error)),
                _ => {}
            }
        }
        match failure {
            None => Ok(Requeue::Never),
            Some(source) => Err(MirrorError::Delete {
                key: key.clone(),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
