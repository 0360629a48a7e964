//! Deletes objects whose owners are gone, and carries out foreground and orphaning deletions.
//!
//! Watches the metadata of everything that can be listed, watched and deleted; deletes objects,
//! removes owner references and the finalizers `foregroundDeletion` and `orphan`.
//! Never deletes on the graph's word alone: the server is asked for the object and its owners,
//! and the deletion carries the uid.

use std::collections::HashSet;
use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::{EventType, Recorder};
use coracle_client::queue::WorkQueue;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Context;
use crate::discovery::{self, Meta};

mod graph; // Pure: who owns whom. Start reading here.
mod plan; // Pure: what becomes of an object.

mod absent;
mod live; // The server's word.
mod monitors; // What the graph is fed with.

use graph::{Effect, FOREGROUND, Graph, Identity, Kind, ORPHAN, Uid};
use live::{Live, LiveError};
use monitors::Monitors;
use plan::{Action, Propagation, Standing, Wait};

/// Objects that are looked at at the same time: upstream has 20, for larger machines.
const WORKERS: usize = 8;
/// How often the list of groups is compared, in case no object told of a change.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);
/// Reasons to discover within this are one.
const DISCOVERY_GATHER: Duration = Duration::from_millis(500);
/// An owner that exists and that no watch has shown is looked at again after this.
const VIRTUAL_RECHECK: Duration = Duration::from_secs(30);
/// Before an owner is sought in the next place where it may be: its dependents may disagree
/// for as long as they are there.
const ELSEWHERE_DELAY: Duration = Duration::from_secs(1);
/// An unknown kind is looked at again after this, if no discovery brought it.
const UNKNOWN_RECHECK: Duration = Duration::from_secs(300);

/// What the queue holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Task {
    Delete(Uid),
    Orphan(Uid),
}

impl Display for Task {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Delete(uid) => write!(f, "delete {uid}"),
            Self::Orphan(uid) => write!(f, "orphan {uid}"),
        }
    }
}

struct Collector {
    live: Live,
    graph: Mutex<Graph>,
    queue: WorkQueue<Task>,
    recorder: Recorder,
    /// Tasks that wait for a kind to be discovered; bounded by the graph.
    unknown: Mutex<HashSet<Task>>,
    discover: Notify,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<Task>::new();
        let collector = Arc::new(Collector {
            live: Live::new(context.client.clone()),
            graph: Mutex::default(),
            queue: queue.clone(),
            recorder: context.recorder("garbage-collector-controller"),
            unknown: Mutex::default(),
            discover: Notify::new(),
        });
        let shutdown = context.shutdown.clone();
        let mut monitors = Monitors::default();
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = first_look(&collector, &mut monitors) => {}
        }
        let reconcile = control_loop::with(Arc::clone(&collector), |it, task| {
            Box::pin(it.reconcile(task))
        });
        let of = Arc::clone(&collector);
        let reconcile = reconcile.telling_of(collector.recorder.clone(), move |task| {
            let (Task::Delete(uid) | Task::Orphan(uid)) = task;
            let node = of.graph.lock().get(uid).cloned();
            node.map(|node| reference(&node.identity))
        });
        let work = control_loop::run(
            "garbage-collector",
            queue,
            WORKERS,
            reconcile,
            shutdown.clone(),
        );
        tokio::join!(work, keep_discovering(&collector, &mut monitors, shutdown));
    })
}

async fn first_look(collector: &Arc<Collector>, monitors: &mut Monitors) {
    let mut delay = DISCOVERY_GATHER;
    while !follow_server(collector, monitors).await {
        tokio::time::sleep(delay).await;
        delay = DISCOVERY_PERIOD.min(delay * 2);
    }
    monitors.synced().await;
}

/// Discovers again when there is a reason to: an object told so, a kind is unknown, or the list
/// of groups is not what it was.
async fn keep_discovering(
    collector: &Arc<Collector>,
    monitors: &mut Monitors,
    shutdown: CancellationToken,
) {
    let client = collector.live.client().clone();
    let mut groups = client.list_api_groups().await.ok();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = collector.discover.notified() => tokio::time::sleep(DISCOVERY_GATHER).await,
            () = tokio::time::sleep(DISCOVERY_PERIOD) => {
                let now = client.list_api_groups().await.ok();
                let complete = collector.live.discovered().failures.is_empty();
                if now.is_none() || (now == groups && complete) {
                    continue;
                }
                groups = now;
            }
        }
        follow_server(collector, monitors).await;
    }
}

/// False if the server does not answer.
async fn follow_server(collector: &Arc<Collector>, monitors: &mut Monitors) -> bool {
    let discovered = match discovery::discover(collector.live.client()).await {
        Ok(discovered) => discovered,
        Err(error) => {
            tracing::debug!(%error, "cannot discover what the server serves");
            return false;
        }
    };
    if *collector.live.discovered() != discovered {
        monitors.follow(collector, &discovered);
        collector.live.set_discovered(discovered);
        for task in std::mem::take(&mut *collector.unknown.lock()) {
            collector.queue.add(task);
        }
    }
    true
}

impl Collector {
    /// Changes the graph and sees to what the change asks for.
    fn change<T>(&self, change: impl FnOnce(&mut Graph) -> T) -> T {
        let (result, effects) = {
            let mut graph = self.graph.lock();
            let result = change(&mut graph);
            (result, graph.take_effects())
        };
        for effect in effects {
            match effect {
                Effect::AttemptDelete(uid) => self.queue.add(Task::Delete(uid)),
                Effect::AttemptDeleteLater(uid) => {
                    self.queue.add_after(Task::Delete(uid), ELSEWHERE_DELAY);
                }
                Effect::AttemptOrphan(uid) => self.queue.add(Task::Orphan(uid)),
                Effect::InvalidNamespace { dependent, owner } => {
                    self.tell_invalid_namespace(&dependent, &owner);
                }
            }
        }
        result
    }

    fn discover_soon(&self) {
        self.discover.notify_one();
    }

    fn tell_invalid_namespace(&self, dependent: &Identity, owner: &Identity) {
        let namespace = &dependent.namespace;
        let message = format!("ownerRef {owner} does not exist in namespace {namespace:?}");
        self.recorder.event(
            &reference(dependent),
            EventType::Warning,
            "OwnerRefInvalidNamespace",
            message,
        );
    }

    async fn reconcile(&self, task: &Task) -> Result<Requeue, LiveError> {
        let done = match task {
            Task::Delete(uid) => self.attempt_delete(uid).await,
            Task::Orphan(uid) => self.attempt_orphan(uid).await,
        };
        match done {
            Err(LiveError::NamespacedOwner) => Ok(Requeue::Never),
            Err(LiveError::UnknownKind(kind)) => {
                tracing::debug!(key = %task, ?kind, "waits for a kind to be discovered");
                self.unknown.lock().insert(task.clone());
                self.discover_soon();
                Ok(Requeue::After(UNKNOWN_RECHECK))
            }
            done => done,
        }
    }

    async fn attempt_delete(&self, uid: &Uid) -> Result<Requeue, LiveError> {
        let Some(node) = self.graph.lock().get(uid).cloned() else {
            return Ok(Requeue::Never);
        };
        if node.deleting && !node.deleting_dependents {
            return Ok(Requeue::Never); // It is on its way.
        }
        let identity = node.identity;
        let latest = self.live.get(&identity).await?;
        let latest = latest.filter(|found| found.metadata.uid.as_deref() == Some(uid));
        let Some(latest) = latest else {
            self.change(|graph| graph.confirm_absent(&identity));
            return Ok(Requeue::Never);
        };
        if node.deleting_dependents {
            self.wait_for_dependents(&identity).await?;
            return Ok(Requeue::Never);
        }
        let owners = latest.metadata.owner_references.iter().flatten();
        let mut standings = Vec::new();
        for owner in owners {
            let standing = self.standing(&identity, owner).await?;
            standings.push((owner.clone(), standing));
        }
        let action = plan::plan(&self.graph.lock(), uid, &latest.metadata, &standings);
        self.execute(&identity, &latest, action).await?;
        let graph = self.graph.lock();
        if graph.get(uid).is_some_and(|node| node.is_virtual) {
            return Ok(Requeue::After(VIRTUAL_RECHECK));
        }
        Ok(Requeue::Never)
    }

    async fn wait_for_dependents(&self, identity: &Identity) -> Result<(), LiveError> {
        let wait = plan::wait(&self.graph.lock(), &identity.uid);
        match wait {
            Wait::Over => self.live.remove_finalizer(identity, FOREGROUND).await,
            Wait::For(dependents) => {
                for uid in dependents {
                    self.queue.add(Task::Delete(uid));
                }
                Ok(())
            }
        }
    }

    /// Asks the server about an owner, unless it is known to be gone.
    async fn standing(
        &self,
        dependent: &Identity,
        owner: &OwnerReference,
    ) -> Result<Standing, LiveError> {
        let mut named = {
            let mut graph = self.graph.lock();
            let named = graph.owner(owner).identity(&dependent.namespace);
            if graph.absent().contains(&named) {
                return Ok(Standing::Dangling);
            }
            named
        };
        if !self.live.resource(&named.kind)?.namespaced {
            named.namespace = "".into();
        }
        let found = self.live.get(&named).await?;
        let same = found.filter(|found| found.metadata.uid.as_deref() == Some(&named.uid));
        let Some(found) = same else {
            self.graph.lock().absent().add(named);
            return Ok(Standing::Dangling);
        };
        let finalizers = found.metadata.finalizers.as_deref().unwrap_or_default();
        let waits = found.metadata.deletion_timestamp.is_some()
            && finalizers.iter().any(|one| one == FOREGROUND);
        Ok(if waits {
            Standing::Waiting
        } else {
            Standing::Solid
        })
    }

    async fn execute(
        &self,
        identity: &Identity,
        latest: &Meta,
        action: Action,
    ) -> Result<(), LiveError> {
        match action {
            Action::Keep => Ok(()),
            Action::RemoveOwners(owners) => self.live.remove_owners(identity, &owners).await,
            Action::Delete {
                propagation,
                unblock: true,
            } => {
                self.live.unblock_owners(identity, latest).await?;
                self.delete(identity, latest, propagation).await
            }
            Action::Delete { propagation, .. } => self.delete(identity, latest, propagation).await,
        }
    }

    async fn delete(
        &self,
        identity: &Identity,
        latest: &Meta,
        propagation: Propagation,
    ) -> Result<(), LiveError> {
        if self.live.delete(identity, latest, propagation).await? {
            tracing::info!(object = %identity, ?propagation, "deleted: its owners are gone");
        } else {
            self.change(|graph| graph.confirm_absent(identity));
        }
        Ok(())
    }

    /// Releases the dependents, then the object itself.
    async fn attempt_orphan(&self, uid: &Uid) -> Result<Requeue, LiveError> {
        let (identity, dependents) = {
            let graph = self.graph.lock();
            let Some(node) = graph.get(uid).filter(|node| node.orphaning) else {
                return Ok(Requeue::Never);
            };
            let dependents = graph.dependents(uid).into_iter();
            let dependents = dependents.map(|node| node.identity.clone());
            (node.identity.clone(), dependents.collect::<Vec<_>>())
        };
        for dependent in &dependents {
            let owner = uid.to_string();
            self.live.remove_owners(dependent, &[owner]).await?;
        }
        self.live.remove_finalizer(&identity, ORPHAN).await?;
        Ok(Requeue::Never)
    }
}

fn reference(object: &Identity) -> ObjectReference {
    let Kind { kind, api_version } = object.kind.as_ref();
    ObjectReference {
        api_version: Some(api_version.to_string()),
        kind: Some(kind.to_string()),
        namespace: (!object.namespace.is_empty()).then(|| object.namespace.to_string()),
        name: Some(object.name.to_string()),
        uid: Some(object.uid.to_string()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
