//! Lets go of claims, volumes and volume attribute classes that nobody uses any more.
//!
//! Admission gives each of them a finalizer, so that one in use stays when it is deleted: a claim
//! while a pod mounts it, a volume while it is bound, a class while a claim or a volume names it.
//! Three loops, one rule: what is not being deleted gets the finalizer if it lacks it, what is
//! being deleted and not in use loses it. They write nothing else.

use crate::{Context, refusal};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer, Kind};
use coracle_client::pod_claims::{self, BY_CLAIM};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube::api::{Api, ListParams, PostParams};
use serde::Serialize;
use std::sync::Arc;

mod usage; // Who uses what. Pure. Start reading here.

const WORKERS: usize = 1;
/// Whole pods of one page: bounds the memory of a look at any number.
const PODS_PER_PAGE: u32 = 100;
/// The index of what uses a class, by its name.
const BY_CLASS: &str = "volume-attributes-class";

#[derive(Debug, thiserror::Error)]
#[error("cannot settle whether {key} may go")]
pub(crate) struct ProtectionError {
    key: ObjectKey,
    source: kube::Error,
}

/// One of the three loops.
struct Guard<K> {
    client: Client,
    objects: Informer<K>,
    finalizer: &'static str,
    api_of: fn(Client, &ObjectKey) -> Api<K>,
    is_used: Box<IsUsed<K>>,
}

type IsUsed<K> = dyn Fn(Arc<K>) -> BoxFuture<'static, Result<bool, kube::Error>> + Send + Sync;

pub(crate) fn run_claims(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let pods: Informer<Pod> = context.informers.get();
        pods.add_index(BY_CLAIM, pod_claims::claims_of);
        let queue = WorkQueue::<ObjectKey>::new();
        let added = queue.clone();
        pods.on_change(move |change| {
            let add = |pod: &Pod| {
                for key in pod_claims::claims_of(pod)
                    .iter()
                    .filter_map(|key| parse_key(key))
                {
                    added.add(key);
                }
            };
            match change {
                Change::Deleted(pod) => add(pod),
                // One pod may have taken another's place between two looks.
                Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => {
                    add(old);
                    add(new);
                }
                other if !usage::may_hold(other.object()) => add(other.object()),
                _ => {}
            }
        });
        let (client, cache) = (context.client.clone(), pods.clone());
        let guard = Guard {
            client: context.client.clone(),
            objects: context.informers.get::<PersistentVolumeClaim>(),
            finalizer: "kubernetes.io/pvc-protection",
            api_of: |client, key| Api::namespaced(client, &key.namespace),
            is_used: Box::new(move |claim| {
                Box::pin(is_mounted(client.clone(), cache.clone(), claim))
            }),
        };
        if pods.synced().await {
            guard.run("pvc-protection", queue, &context).await;
        }
    })
}

pub(crate) fn run_volumes(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let guard = Guard {
            client: context.client.clone(),
            objects: context.informers.get::<PersistentVolume>(),
            finalizer: "kubernetes.io/pv-protection",
            api_of: |client, _| Api::all(client),
            is_used: Box::new(|volume| {
                let is_used = usage::is_bound(&volume);
                Box::pin(async move { Ok(is_used) })
            }),
        };
        let queue = WorkQueue::new();
        guard.run("pv-protection", queue, &context).await;
    })
}

pub(crate) fn run_classes(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let claims: Informer<PersistentVolumeClaim> = context.informers.get();
        let volumes: Informer<PersistentVolume> = context.informers.get();
        claims.add_index(BY_CLASS, usage::classes_of_claim);
        volumes.add_index(BY_CLASS, usage::classes_of_volume);
        let queue = WorkQueue::<ObjectKey>::new();
        follow(&claims, &queue, usage::classes_of_claim);
        follow(&volumes, &queue, usage::classes_of_volume);
        let (in_claims, in_volumes) = (claims.clone(), volumes.clone());
        let guard = Guard {
            client: context.client.clone(),
            objects: context.informers.get::<VolumeAttributesClass>(),
            finalizer: "kubernetes.io/vac-protection",
            api_of: |client, _| Api::all(client),
            is_used: Box::new(move |class| {
                let name = class.metadata.name.as_deref().unwrap_or_default();
                let is_used = !in_volumes.by_index(BY_CLASS, name).is_empty()
                    || !in_claims.by_index(BY_CLASS, name).is_empty();
                Box::pin(async move { Ok(is_used) })
            }),
        };
        if claims.synced().await && volumes.synced().await {
            guard.run("vac-protection", queue, &context).await;
        }
    })
}

/// Looks at the classes that an object named before and does not name now.
fn follow<K: Kind>(
    informer: &Informer<K>,
    queue: &WorkQueue<ObjectKey>,
    classes_of: fn(&K) -> Vec<String>,
) {
    let added = queue.clone();
    informer.on_change(move |change| {
        let (before, now) = match change {
            Change::Deleted(object) => (classes_of(object), Vec::new()),
            Change::Updated { old, new } => (classes_of(old), classes_of(new)),
            _ => return,
        };
        for class in before.into_iter().filter(|class| !now.contains(class)) {
            added.add(ObjectKey::new("", class));
        }
    });
}

fn parse_key(text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}

/// Asks the copy first, and the server before the answer is no: the copy may lag behind a pod that
/// was just put on a node.
async fn is_mounted(
    client: Client,
    cache: Informer<Pod>,
    claim: Arc<PersistentVolumeClaim>,
) -> Result<bool, kube::Error> {
    let key = key_of(claim.as_ref());
    let known = cache.by_index(BY_CLAIM, &pod_claims::index(&key.namespace, &key.name));
    if known.iter().any(|pod| usage::mounts(pod, &claim)) {
        return Ok(true);
    }
    let pods: Api<Pod> = Api::namespaced(client, &key.namespace);
    let mut params = ListParams::default().limit(PODS_PER_PAGE);
    loop {
        let page = pods.list(&params).await?;
        if page.items.iter().any(|pod| usage::mounts(pod, &claim)) {
            return Ok(true);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(false),
        }
    }
}

impl<K: Kind + Serialize> Guard<K> {
    async fn run(self, name: &'static str, queue: WorkQueue<ObjectKey>, context: &Context) {
        let (added, finalizer) = (queue.clone(), self.finalizer);
        self.objects.on_change(move |change| {
            let gone = matches!(change, Change::Deleted(_));
            if !gone && usage::is_open(change.object().meta(), finalizer) {
                added.add(key_of(change.object().as_ref()));
            }
        });
        if !self.objects.synced().await {
            return;
        }
        let (objects, recorder) = (self.objects.clone(), context.failures(name));
        let guard = Arc::new(self);
        let reconcile = control_loop::with(guard, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        let shutdown = context.shutdown.clone();
        control_loop::run(name, queue, WORKERS, reconcile, shutdown).await;
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ProtectionError> {
        match self.settle(key).await {
            Ok(()) => Ok(Requeue::Never),
            Err(error) if refusal::is_not_found(&error) => Ok(Requeue::Never),
            Err(source) => {
                let key = key.clone();
                Err(ProtectionError { key, source })
            }
        }
    }

    async fn settle(&self, key: &ObjectKey) -> Result<(), kube::Error> {
        let Some(object) = self.objects.get(key) else {
            return Ok(());
        };
        if !usage::is_open(object.meta(), self.finalizer) {
            return Ok(());
        }
        let is_deleting = object.meta().deletion_timestamp.is_some();
        if is_deleting && (self.is_used)(Arc::clone(&object)).await? {
            tracing::debug!(%key, "stays while it is in use");
            return Ok(());
        }
        // The whole object, with its resourceVersion: these identities may not patch.
        let mut next = K::clone(&object);
        let finalizers = next.meta_mut().finalizers.get_or_insert_default();
        if is_deleting {
            finalizers.retain(|own| own != self.finalizer);
        } else {
            finalizers.push(self.finalizer.to_owned());
        }
        let api = (self.api_of)(self.client.clone(), key);
        api.replace(&key.name, &PostParams::default(), &next)
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
