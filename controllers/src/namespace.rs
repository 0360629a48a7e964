//! Empties a namespace that is being deleted, then lets it go.
//!
//! Reads Namespaces; deletes whatever a deleted namespace holds, pods before all else, writes its
//! conditions, and at last removes the finalizer `kubernetes` from its spec.
//! Never waits in a pass: what takes time is watched, and the next pass comes when it is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::{Clock, Instant};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use parking_lot::Mutex;

use crate::{Context, refusal};

mod conditions; // Pure: what is told about a pass.
mod content; // One pass over what a namespace holds.
mod pass; // Pure: what it came to.
mod remaining; // Tells when what remained is gone.

use pass::Pass;
use remaining::Watches;

/// As many namespaces at a time as upstream.
const WORKERS: usize = 10;
/// The finalizer of `spec.finalizers` that this loop stands for.
const FINALIZER: &str = "kubernetes";
/// From the first sight of a deletion to the first end: a creation that was let in just before
/// has been written by then.
const SETTLE: Duration = Duration::from_millis(250);
/// The longest wait after failures: a user looks on.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How often a write is tried again with the newest object.
const CONFLICTS_MAX: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum EmptyError {
    #[error("cannot read the namespace")]
    Read(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
    #[error("cannot discover what the server serves")]
    Discover(#[source] kube::Error),
    #[error("cannot finalize the namespace")]
    Finalize(#[source] kube::Error),
    #[error("{0}")]
    Content(String),
}

struct Controller {
    client: Client,
    namespaces: Informer<Namespace>,
    queue: WorkQueue<ObjectKey>,
    clock: Clock,
    watches: Watches,
    /// When the deletion of each namespace was first seen.
    seen: Mutex<HashMap<ObjectKey, Instant>>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            namespaces: context.informers.get(),
            queue: queue.clone(),
            clock: context.clock.clone(),
            watches: Watches::new(context.client.clone(), queue.clone()),
            seen: Mutex::default(),
        });
        let added = queue.clone();
        controller.namespaces.on_change(move |change| {
            if concerns(change) {
                added.add(key_of(change.object().as_ref()));
            }
        });
        if !controller.namespaces.synced().await {
            return;
        }
        let (objects, recorder) = (
            controller.namespaces.clone(),
            context.failures("namespace-controller"),
        );
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run("namespace", queue, WORKERS, reconcile, context.shutdown).await;
    })
}

/// Our own writes of conditions are no reason for another pass.
fn concerns(change: &Change<Namespace>) -> bool {
    let deleting = |namespace: &Namespace| namespace.metadata.deletion_timestamp.is_some();
    match change {
        Change::Deleted(_) => true,
        Change::Added(new) | Change::Resync(new) => deleting(new),
        Change::Updated { old, new } => deleting(new) && (!deleting(old) || old.spec != new.spec),
    }
}

fn has_finalizer(namespace: &Namespace) -> bool {
    let spec = namespace.spec.as_ref();
    let finalizers = spec.and_then(|spec| spec.finalizers.as_deref());
    finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, EmptyError> {
        self.watches.stop(key);
        let cached = self.namespaces.get(key);
        let deleting = cached.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
        if !deleting {
            self.seen.lock().remove(key);
            return Ok(Requeue::Never);
        }
        let outcome = self.empty(key).await;
        if outcome.is_err() {
            self.queue.add_after(key.clone(), RETRY_MAX); // The queue's own delay may be longer.
        }
        outcome
    }

    async fn empty(&self, key: &ObjectKey) -> Result<Requeue, EmptyError> {
        let now = self.clock.monotonic();
        let first = *self.seen.lock().entry(key.clone()).or_insert(now);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let read = namespaces.get_opt(&key.name).await;
        let Some(namespace) = read.map_err(EmptyError::Read)? else {
            return Ok(Requeue::Never);
        };
        if namespace.metadata.deletion_timestamp.is_none() || !has_finalizer(&namespace) {
            return Ok(Requeue::Never);
        }
        let Some(namespace) = self.mark_terminating(&namespaces, namespace).await? else {
            return Ok(Requeue::Never);
        };
        let pass = content::delete_all(&self.client, &namespace, self.clock.now()).await?;
        let Some(namespace) = self.tell(&namespaces, namespace, &pass).await else {
            return Ok(Requeue::Never);
        };
        let remains = !pass.remaining.is_empty();
        if remains {
            self.watches.start(key, &pass.remaining);
        }
        if let Some(errors) = pass.errors_text() {
            return Err(EmptyError::Content(errors));
        }
        if pass.estimate_seconds > 0 || remains {
            return Ok(Requeue::After(Duration::from_secs(
                pass.estimate_seconds / 2 + 1,
            )));
        }
        let settled = first + SETTLE;
        if now < settled {
            return Ok(Requeue::After(settled - now));
        }
        self.finalize(&namespaces, namespace).await?;
        tracing::info!(namespace = %key.name, "emptied");
        Ok(Requeue::Never)
    }

    /// The namespace as it is now; none if it is gone.
    async fn mark_terminating(
        &self,
        namespaces: &Api<Namespace>,
        mut namespace: Namespace,
    ) -> Result<Option<Namespace>, EmptyError> {
        let status = namespace.status.get_or_insert_default();
        if status.phase.as_deref() == Some("Terminating") {
            return Ok(Some(namespace));
        }
        status.phase = Some("Terminating".to_owned());
        let name = namespace.metadata.name.clone().unwrap_or_default();
        let params = PostParams::default();
        match namespaces.replace_status(&name, &params, &namespace).await {
            Ok(written) => Ok(Some(written)),
            Err(error) if refusal::is_not_found(&error) => Ok(None),
            Err(error) => Err(EmptyError::Status(error)),
        }
    }

    /// Writes the conditions if they changed. A failure is no reason to stop: the next pass
    /// writes them again. None if the namespace is gone or is another by now.
    async fn tell(
        &self,
        namespaces: &Api<Namespace>,
        mut namespace: Namespace,
        pass: &Pass,
    ) -> Option<Namespace> {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        let told = pass.conditions();
        for _ in 0..CONFLICTS_MAX {
            let status = namespace.status.get_or_insert_default();
            let conditions = status.conditions.get_or_insert_default();
            if !conditions::update(conditions, &told, &self.clock.time()) {
                break;
            }
            let params = PostParams::default();
            match namespaces.replace_status(&name, &params, &namespace).await {
                Ok(written) => return Some(written),
                Err(error) if is_conflict(&error) => {}
                Err(error) if refusal::is_not_found(&error) => return None,
                Err(error) => {
                    tracing::warn!(namespace = %name, %error, "cannot write the conditions");
                    break;
                }
            }
            let newest = namespaces.get_opt(&name).await.ok().flatten()?;
            if newest.metadata.uid != namespace.metadata.uid {
                return None;
            }
            namespace = newest;
        }
        Some(namespace)
    }

    async fn finalize(
        &self,
        namespaces: &Api<Namespace>,
        mut namespace: Namespace,
    ) -> Result<(), EmptyError> {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        let uid = namespace.metadata.uid.clone();
        for attempt in 1.. {
            if let Some(all) = namespace
                .spec
                .as_mut()
                .and_then(|spec| spec.finalizers.as_mut())
            {
                all.retain(|one| one != FINALIZER);
            }
            namespace.status = None;
            let params = PostParams::default();
            let done: Result<Namespace, _> = namespaces
                .replace_subresource("finalize", &name, &params, &namespace)
                .await;
            match done {
                Ok(_) => break,
                Err(error) if refusal::is_not_found(&error) => break,
                Err(error) if is_conflict(&error) && attempt < CONFLICTS_MAX => {}
                Err(error) => return Err(EmptyError::Finalize(error)),
            }
            let newest = namespaces.get_opt(&name).await.map_err(EmptyError::Read)?;
            match newest {
                Some(newest) if newest.metadata.uid == uid => namespace = newest,
                _ => break,
            }
        }
        Ok(())
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict())
}

#[cfg(test)]
mod tests;
