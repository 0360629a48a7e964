//! Deletes certificate requests that nobody waits for any more, once an hour.
//!
//! Reads and deletes CertificateSigningRequests. A certificate that was issued stays good; only the
//! request for it goes.

use crate::Context;
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, DeleteParams, Preconditions};
use std::sync::Arc;
use std::time::Duration;

mod plan; // Pure. Start reading here.

const WORKERS: usize = 1;
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// The one key there is: a pass over everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sweep;

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("all certificate requests")
    }
}

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
        let queue = WorkQueue::<Sweep>::new();
        queue.add(Sweep);
        let reconcile = control_loop::with(controller, |it, _| Box::pin(it.sweep()));
        control_loop::run("csr-clean", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    async fn sweep(&self) -> Result<Requeue, CleanError> {
        let now = self.clock.now();
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        for request in self.requests.list() {
            let Some(reason) = plan::why_over(&request, now) else {
                continue;
            };
            let name = key_of(request.as_ref()).name;
            tracing::info!(request = %name, reason, "a certificate request is deleted");
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: request.metadata.uid.clone(),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            match requests.delete(&name, &params).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
                Err(source) => {
                    let request = name.to_string();
                    return Err(CleanError { request, source });
                }
            }
        }
        Ok(Requeue::After(LOOK_EVERY))
    }
}
