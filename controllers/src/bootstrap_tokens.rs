//! Bootstrap tokens, Secrets of type `bootstrap.kubernetes.io/token` in kube-system: deletes them
//! when their time is over, and signs `kube-public/cluster-info` with those that may.
//!
//! Two loops over the same few Secrets. The cleaner deletes them and nothing else; the signer
//! writes `jws-kubeconfig-ID` into that one ConfigMap, and does nothing where nobody made it.

use crate::{Context, refusal};
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Filter, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use std::sync::Arc;
use std::time::Duration;

mod sign; // Signatures, and what a ConfigMap should have of them. Pure.
mod token; // What a Secret says. Pure.

use token::Life;

const CLEANER: &str = "token-cleaner-controller";
const SIGNER: &str = "bootstrap-signer-controller";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const NAMESPACE: &str = "kube-system";
const PUBLIC: &str = "kube-public";
const CLUSTER_INFO: &str = "cluster-info";
/// As upstream: there is little to do at a time.
const WORKERS: usize = 1;
/// The machine's clock may be set while a token lives.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("cannot delete the token")]
    Delete(#[source] kube::Error),
    #[error("cannot write the signatures")]
    Sign(#[source] kube::Error),
}

fn tokens(context: &Context) -> Informer<Secret> {
    let of_type = Filter::fields(format!("type={TYPE}")).in_namespace(NAMESPACE);
    context.informers.get_filtered(of_type)
}

pub(crate) fn run_cleaner(context: Context) -> BoxFuture<'static, ()> {
    clean(context).boxed()
}

async fn clean(context: Context) {
    let queue = WorkQueue::<ObjectKey>::new();
    let cleaner = Arc::new(Cleaner {
        client: context.client.clone(),
        tokens: tokens(&context),
        clock: context.clock.clone(),
    });
    let added = queue.clone();
    cleaner.tokens.on_change(move |change| {
        if !matches!(change, Change::Deleted(_)) {
            added.add(key_of(change.object().as_ref()));
        }
    });
    if !cleaner.tokens.synced().await {
        return;
    }
    let (objects, recorder) = (cleaner.tokens.clone(), context.failures(CLEANER));
    let reconcile = control_loop::with(cleaner, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(CLEANER, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Cleaner {
    client: Client,
    tokens: Informer<Secret>,
    clock: Clock,
}

impl Cleaner {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(secret) = self.tokens.get(key) else {
            return Ok(Requeue::Never);
        };
        match token::life(&secret, self.clock.now()) {
            Life::ForEver => return Ok(Requeue::Never),
            Life::Left(left) => return Ok(Requeue::After(left.min(LOOK_AGAIN_MAX))),
            Life::Over => {}
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        // One that was prolonged meanwhile stays, and comes here by its change.
        let exactly = DeleteParams::default().preconditions(Preconditions {
            uid: secret.metadata.uid.clone(),
            resource_version: secret.metadata.resource_version.clone(),
        });
        match secrets.delete(&key.name, &exactly).await {
            Ok(_) => Ok(Requeue::Never),
            Err(error) if refusal::is_conflict(&error) || refusal::is_not_found(&error) => {
                Ok(Requeue::Never)
            }
            Err(error) => Err(ReconcileError::Delete(error)),
        }
    }
}

pub(crate) fn run_signer(context: Context) -> BoxFuture<'static, ()> {
    keep_signed(context).boxed()
}

async fn keep_signed(context: Context) {
    let queue = WorkQueue::<ObjectKey>::new();
    let only = Filter::fields(format!("metadata.name={CLUSTER_INFO}")).in_namespace(PUBLIC);
    let signer = Arc::new(Signer {
        client: context.client.clone(),
        tokens: tokens(&context),
        maps: context.informers.get_filtered(only),
        clock: context.clock.clone(),
    });
    let key = ObjectKey::new(PUBLIC, CLUSTER_INFO);
    let (added, of_tokens) = (queue.clone(), key.clone());
    signer
        .tokens
        .on_change(move |_| added.add(of_tokens.clone()));
    let added = queue.clone();
    signer.maps.on_change(move |_| added.add(key.clone()));
    if !(signer.tokens.synced().await && signer.maps.synced().await) {
        return;
    }
    let (objects, recorder) = (signer.maps.clone(), context.failures(SIGNER));
    let reconcile = control_loop::with(signer, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(SIGNER, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Signer {
    client: Client,
    tokens: Informer<Secret>,
    maps: Informer<ConfigMap>,
    clock: Clock,
}

impl Signer {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(map) = self.maps.get(key) else {
            return Ok(Requeue::Never);
        };
        let (secrets, now) = (self.tokens.list(), self.clock.now());
        let tokens = secrets
            .iter()
            .filter_map(|secret| token::to_sign_with(secret, now));
        let Some(signed) = sign::signed(&map, tokens) else {
            return Ok(Requeue::Never);
        };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &key.namespace);
        match maps
            .replace(&key.name, &PostParams::default(), &signed)
            .await
        {
            Ok(_) => Ok(Requeue::Never),
            // Its change, or its end, is on the way here.
            Err(error) if refusal::is_conflict(&error) || refusal::is_not_found(&error) => {
                Ok(Requeue::Never)
            }
            Err(error) => Err(ReconcileError::Sign(error)),
        }
    }
}

#[cfg(test)]
mod tests;
