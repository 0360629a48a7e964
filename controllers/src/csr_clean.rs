//! Deletes certificate requests that nobody waits for any more, once an hour.
//!
//! Reads and deletes CertificateSigningRequests. A certificate that was issued stays good; only the
//! request for it goes.

use crate::Context;
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, DeleteParams, Preconditions};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

mod plan; // Pure. Start reading here.

const WORKERS: usize = 1;
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, thiserror::Error)]
#[error("cannot delete the certificate request {request}")]
pub(crate) struct CleanError {
    request: String,
    source: kube::Error,
}

struct Controller {
    client: Client,
    requests: Informer<CertificateSigningRequest>,
    clock: Clock,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            requests: context.informers.get(),
            clock: context.clock.clone(),
        });
        if !controller.requests.synced().await {
            return;
        }
        let queue = WorkQueue::<ObjectKey>::new();
        let (objects, recorder) = (controller.requests.clone(), context.failures("csr-clean"));
        let sweeping = keep_sweeping(controller.clone(), queue.clone(), context.shutdown.clone());
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        let work = control_loop::run("csr-clean", queue, WORKERS, reconcile, context.shutdown);
        tokio::join!(work, sweeping);
    })
}

async fn keep_sweeping(
    controller: Arc<Controller>,
    queue: WorkQueue<ObjectKey>,
    shutdown: CancellationToken,
) {
    loop {
        let now = controller.clock.now();
        for request in controller.requests.list() {
            if plan::why_over(&request, now).is_some() {
                queue.add(key_of(request.as_ref()));
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, CleanError> {
        let Some(request) = self.requests.get(key) else {
            return Ok(Requeue::Never);
        };
        let Some(reason) = plan::why_over(&request, self.clock.now()) else {
            return Ok(Requeue::Never);
        };
        tracing::info!(request = %key.name, reason, "a certificate request is deleted");
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: request.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        match requests.delete(&key.name, &params).await {
            Ok(_) => Ok(Requeue::Never),
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                Ok(Requeue::Never)
            }
            Err(source) => Err(CleanError {
                request: key.name.to_string(),
                source,
            }),
        }
    }
}
