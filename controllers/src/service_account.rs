//! Sees to it that every live namespace has the service account `default`.
//!
//! Reads Namespaces and ServiceAccounts; creates ServiceAccounts, never changes or deletes one.

use crate::{Context, refusal};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use std::sync::Arc;

const DEFAULT: &str = "default";
/// Namespaces come in bursts when manifests are applied.
const WORKERS: usize = 2;

#[derive(Debug, thiserror::Error)]
#[error("cannot create the service account {DEFAULT} in {namespace}")]
pub(crate) struct CreateError {
    namespace: String,
    source: kube::Error,
}

struct Controller {
    client: Client,
    namespaces: Informer<Namespace>,
    accounts: Informer<ServiceAccount>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            namespaces: context.informers.get(),
            accounts: context.informers.get(),
        });
        let added = queue.clone();
        controller
            .namespaces
            .on_change(move |change| added.add(key_of(change.object().as_ref())));
        let added = queue.clone();
        controller.accounts.on_change(move |change| {
            if let Change::Deleted(account) = change {
                let namespace = account.metadata.namespace.clone().unwrap_or_default();
                added.add(ObjectKey::new("", namespace));
            }
        });
        if !(controller.namespaces.synced().await && controller.accounts.synced().await) {
            return;
        }
        let (objects, recorder) = (
            controller.namespaces.clone(),
            context.failures("service-account-controller"),
        );
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run(
            "service-account",
            queue,
            WORKERS,
            reconcile,
            context.shutdown,
        )
        .await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, CreateError> {
        let Some(namespace) = self.namespaces.get(key) else {
            return Ok(Requeue::Never);
        };
        let is_there = self
            .accounts
            .get(&ObjectKey::new(&*key.name, DEFAULT))
            .is_some();
        if is_there || namespace.metadata.deletion_timestamp.is_some() {
            return Ok(Requeue::Never);
        }
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(DEFAULT.to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &key.name);
        match accounts.create(&PostParams::default(), &account).await {
            Ok(_) => Ok(Requeue::Never),
            Err(error)
                if refusal::is_already_exists(&error)
                    || refusal::is_not_found(&error)
                    || refusal::is_namespace_terminating(&error) =>
            {
                Ok(Requeue::Never)
            }
            Err(source) => Err(CreateError {
                namespace: key.name.clone(),
                source,
            }),
        }
    }
}
