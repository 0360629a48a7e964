//! Signs approved certificate requests of the signers that Kubernetes defines.
//!
//! `kube-apiserver-client`, `kube-apiserver-client-kubelet`, `kubelet-serving` and
//! `legacy-unknown`, each within its rules; a request that breaks them gets the condition Failed.
//! Requests of other signers are left to those. Never approves.

use crate::Context;
use crate::csr;
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kube::api::{Api, PostParams};
use std::sync::Arc;

mod issue; // Pure: from a request to a certificate.

use issue::{Authority, IssueError};

const WORKERS: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SignError {
    #[error("cannot sign the request")]
    Issue(#[from] IssueError),
    #[error("cannot write the certificate")]
    Write(#[source] kube::Error),
}

struct Controller {
    client: Client,
    requests: Informer<CertificateSigningRequest>,
    authority: Authority,
    clock: Clock,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let config = &context.config;
        let (certificate, key) = (&config.signing_cert_pem, &config.signing_key_pem);
        let authority = match Authority::from_pem(certificate, key) {
            Ok(authority) => authority,
            Err(error) => {
                tracing::error!(%error, "certificate requests are not signed");
                return context.shutdown.cancelled().await;
            }
        };
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            requests: context.informers.get(),
            authority,
            clock: context.clock.clone(),
        });
        let added = queue.clone();
        controller
            .requests
            .on_change(move |change| added.add(key_of(change.object().as_ref())));
        if !controller.requests.synced().await {
            return;
        }
        let (objects, recorder) = (controller.requests.clone(), context.failures("csr-sign"));
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run("csr-sign", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, SignError> {
        let Some(request) = self.requests.get(key) else {
            return Ok(Requeue::Never);
        };
        let is_ours = issue::SIGNERS.contains(&request.spec.signer_name.as_str());
        let is_over = csr::has_certificate(&request)
            || csr::has_condition(&request, "Failed")
            || csr::has_condition(&request, "Denied");
        if !is_ours || is_over || !csr::has_condition(&request, "Approved") {
            return Ok(Requeue::Never);
        }
        let mut answered = CertificateSigningRequest::clone(&request);
        let status = answered.status.get_or_insert_with(Default::default);
        match issue::fault(&request.spec) {
            Some(fault) => status
                .conditions
                .get_or_insert_with(Vec::new)
                .push(self.failed(fault)),
            None => {
                let random = rand::random();
                let pem = self
                    .authority
                    .issue(&request.spec, self.clock.now(), random)?;
                status.certificate = Some(ByteString(pem.into_bytes()));
            }
        }
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        requests
            .replace_status(&key.name, &PostParams::default(), &answered)
            .await
            .map_err(SignError::Write)?;
        Ok(Requeue::Never)
    }

    fn failed(&self, message: String) -> CertificateSigningRequestCondition {
        let now = self.clock.time();
        CertificateSigningRequestCondition {
            type_: "Failed".to_owned(),
            status: "True".to_owned(),
            reason: Some("SignerValidationFailure".to_owned()),
            message: Some(message),
            last_update_time: Some(now.clone()),
            last_transition_time: Some(now),
        }
    }
}

#[cfg(test)]
mod tests;
