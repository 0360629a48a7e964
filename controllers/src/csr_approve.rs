//! Approves the certificate requests that a node makes for itself.
//!
//! A client certificate is approved when whoever asks is authorized to ask for one (a token that
//! enrols nodes, or the node itself); a serving certificate when the node itself asks and every
//! name and address in it is one that its Node object has, and neither another node's nor the API
//! server's. Everything else waits for a person.
//! Never signs, never denies.

use crate::Context;
use crate::csr;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Filter, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, clock::Clock, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, PostParams};
use std::sync::Arc;

mod plan; // Pure. Start reading here.
mod taken; // What no node is let serve. Pure.

use plan::Plan;
use taken::Taken;

/// Of the slices that hold the addresses of API servers, in `default`.
const OF_API_SERVERS: &str = "kubernetes.io/service-name=kubernetes";

/// Requests are few; one waits for the server most of its time.
const WORKERS: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApproveError {
    #[error("cannot ask whether {user} may have this certificate")]
    Review { user: String, source: kube::Error },
    #[error("cannot approve the request")]
    Approve(#[source] kube::Error),
}

struct Controller {
    client: Client,
    requests: Informer<CertificateSigningRequest>,
    nodes: Informer<Node>,
    api_servers: Informer<EndpointSlice>,
    /// What the API server answers to.
    server_names: Vec<String>,
    clock: Clock,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let of_servers = Filter::labels(OF_API_SERVERS).in_namespace("default");
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            requests: context.informers.get(),
            nodes: context.informers.get(),
            api_servers: context.informers.get_filtered(of_servers),
            server_names: context.config.server_names.clone(),
            clock: context.clock.clone(),
        });
        let added = queue.clone();
        controller
            .requests
            .on_change(move |change| added.add(key_of(change.object().as_ref())));
        // A serving request may wait for the addresses of its node.
        let (added, requests) = (queue.clone(), controller.requests.clone());
        controller.nodes.on_change(move |_| {
            for request in requests.list() {
                if !csr::is_decided(&request) && request.spec.signer_name == csr::NODE_SERVING {
                    added.add(key_of(request.as_ref()));
                }
            }
        });
        let synced = controller.requests.synced().await
            && controller.nodes.synced().await
            && controller.api_servers.synced().await;
        if !synced {
            return;
        }
        let (objects, recorder) = (controller.requests.clone(), context.failures("csr-approve"));
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run("csr-approve", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ApproveError> {
        let Some(request) = self.requests.get(key) else {
            return Ok(Requeue::Never);
        };
        let node = |name: &str| self.nodes.get(&ObjectKey::new("", name));
        let taken = |own: &str| self.taken(own);
        match plan::plan(&request, node, taken) {
            Plan::Leave => {}
            Plan::Approve { message } => self.approve(&request, message).await?,
            Plan::ApproveIfAllowed { choices } => {
                for choice in choices {
                    if self.is_allowed(&request, choice.subresource).await? {
                        self.approve(&request, choice.message).await?;
                        break;
                    }
                }
            }
        }
        Ok(Requeue::Never)
    }

    fn taken(&self, own: &str) -> Taken {
        let (nodes, servers) = (self.nodes.list(), self.api_servers.list());
        let nodes = nodes.iter().map(AsRef::as_ref);
        let servers = servers.iter().map(AsRef::as_ref);
        Taken::of(own, nodes, servers, &self.server_names)
    }

    async fn is_allowed(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
    ) -> Result<bool, ApproveError> {
        let spec = &request.spec;
        let user = spec.username.clone().unwrap_or_default();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: spec.username.clone(),
                groups: spec.groups.clone(),
                uid: spec.uid.clone(),
                extra: spec.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    group: Some("certificates.k8s.io".to_owned()),
                    resource: Some("certificatesigningrequests".to_owned()),
                    subresource: Some(subresource.to_owned()),
                    verb: Some("create".to_owned()),
                    version: Some("*".to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews
            .create(&PostParams::default(), &review)
            .await
            .map_err(|source| ApproveError::Review { user, source })?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    async fn approve(
        &self,
        request: &CertificateSigningRequest,
        message: &str,
    ) -> Result<(), ApproveError> {
        let mut approved = request.clone();
        let now = self.clock.time();
        let condition = CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some("AutoApproved".to_owned()),
            message: Some(message.to_owned()),
            last_update_time: Some(now.clone()),
            last_transition_time: Some(now),
        };
        let status = approved.status.get_or_insert_with(Default::default);
        status
            .conditions
            .get_or_insert_with(Vec::new)
            .push(condition);
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let name = request.metadata.name.as_deref().unwrap_or_default();
        requests
            .replace_subresource("approval", name, &PostParams::default(), &approved)
            .await
            .map(drop)
            .map_err(ApproveError::Approve)
    }
}

#[cfg(test)]
mod tests;
