//! The pods of this node: one worker each, fed by the API server and by the runtime.
//!
//! Sources: an informer of the pods bound to this node, files of static pods, and what the runtime
//! already has. What
//! the runtime has and the API server has not is taken down, once the API server was listed.
//! A worker that panics is made again from what the runtime has.

pub mod admission; // What is not run here at all.
pub(crate) mod asked; // What a pod requests. Pure.
pub mod back_off;
mod container_config;
mod contents;
pub mod context;
mod door; // Who is let in.
pub(crate) mod environment;
mod ephemeral;
mod evict;
mod files;
mod fit; // Pure.
mod groups;
mod hook;
mod id_ranges;
mod image;
mod kill;
mod last_words;
pub mod ledger;
mod manifest;
mod mount; // Volumes, on the way up.
mod plan; // Pure. Start reading here.
mod preempt; // Pure.
mod prepare;
mod probe;
mod report;
mod resize;
mod resolver; // Pure.
mod rotate;
mod security;
pub mod sizes;
mod start;
pub(crate) mod state;
mod static_pods;
mod status;
mod take_down; // Of sandboxes.
mod tokens;
mod unmount; // Volumes, on the way down.
mod volume_writes;
mod worker;

#[cfg(test)]
mod testing; // Pods in a few words.

pub use container_config::shares as cpu_shares;
pub use context::{Confines, Context, PODS};
pub use evict::Eviction;
pub use image::Puller;
pub use manifest::is_static;
pub use prepare::{HOSTS, RESOLV_CONF};
pub use probe::Tallies;
pub use rotate::remove as remove_log;
pub use take_down::TakeDownError;
pub use tokens::Tokens;
pub use volume_writes::VolumeWrites;

use crate::runtime::{ContainerEvent, Runtime, RuntimeError, SandboxStatus};
use coracle_client::informer::{Change, Informer};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use state::Observed;
use static_pods::Statics;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use unmount::Extent;
use worker::{Desired, Worker};

/// Before a worker that panicked, or that cannot list the runtime, is made again.
const REMAKE_AFTER: Duration = Duration::from_secs(2);
/// The longest pause between two tries to take away what a lost pod left.
const BURY_PAUSE_MAX: Duration = Duration::from_secs(122);

/// Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Pods {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    context: Arc<Context>,
    workers: Mutex<HashMap<String, Handle>>,
    /// Pods came or went.
    changed: Arc<Notify>,
    statics: Statics,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Handle {
    desired: watch::Sender<Desired>,
    wake: Arc<Notify>,
    /// It was let in and has its share of the node.
    is_admitted: bool,
}

impl Pods {
    pub fn new(context: Arc<Context>, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(Shared {
                context,
                workers: Mutex::default(),
                changed: Arc::new(Notify::new()),
                statics: Statics::default(),
                tasks: TaskTracker::new(),
                stop,
            }),
        }
    }

    /// Looks after what runs, whoever asked for it. Before anything is run.
    pub fn begin(&self) {
        let shared = self.shared.clone();
        let events = shared.context.runtime.events();
        shared.tasks.spawn(shared.clone().follow(events));
        let rotating = rotate::run(shared.context.clone(), shared.stop.clone());
        shared.tasks.spawn(rotating);
        let pods = self.clone();
        let list = move || pods.list();
        let (tasks, stop) = (shared.tasks.clone(), shared.stop.clone());
        let freshening = contents::keep_fresh(shared.context.clone(), list, tasks, stop);
        shared.tasks.spawn(freshening);
        let pods = self.clone();
        let (changed, stop) = (shared.changed.clone(), shared.stop.clone());
        let weighing = groups::keep(shared.context.clone(), move || pods.list(), changed, stop);
        shared.tasks.spawn(weighing);
    }

    /// Runs what the informer shows, from its first list on.
    pub async fn run(&self, informer: Informer<Pod>) -> Result<(), RuntimeError> {
        let shared = self.shared.clone();
        if !informer.synced().await {
            return Ok(());
        }
        let listed = informer.list();
        shared.hold_all(&listed);
        let feed = shared.clone();
        informer.on_change(move |change| match change {
            Change::Added(pod) | Change::Updated { new: pod, .. } | Change::Resync(pod) => {
                feed.want(pod, false);
            }
            Change::Deleted(pod) => feed.want(pod, true),
        });
        shared.release_gone(&listed);
        shared.adopt_orphans(&informer).await
    }

    pub fn list(&self) -> Vec<Arc<Pod>> {
        let workers = self.shared.workers.lock();
        workers
            .values()
            .map(|handle| handle.desired.borrow().pod.clone())
            .collect()
    }

    /// Waits for the workers after the stop.
    pub async fn drained(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    /// What pods were given counts before the first of them asks for more.
    fn hold_all(&self, pods: &[Arc<Pod>]) {
        let runs_here = |pod: &&Arc<Pod>| !manifest::is_mirror(pod) && !state::has_ended(pod);
        for pod in pods.iter().filter(runs_here) {
            if let Some(uid) = &pod.metadata.uid {
                let given = sizes::given(&self.context.pod_directory(pod), pod);
                self.context.ledger.hold(uid, given);
            }
        }
    }

    /// Of these, what went before it had a worker, which would give back what it had.
    fn release_gone(&self, pods: &[Arc<Pod>]) {
        let workers = self.workers.lock();
        let uids = pods.iter().filter_map(|pod| pod.metadata.uid.as_ref());
        for uid in uids.filter(|uid| !workers.contains_key(*uid)) {
            self.context.ledger.release(uid);
        }
    }

    fn want(self: &Arc<Self>, pod: &Arc<Pod>, is_gone: bool) {
        if manifest::is_mirror(pod) {
            return self.note_mirror(pod, is_gone);
        }
        let pod = manifest::of_server(pod);
        let Some(uid) = pod.metadata.uid.clone() else {
            return;
        };
        let mut workers = self.workers.lock();
        if let Some(handle) = workers.get(&uid) {
            handle.desired.send_modify(|desired| {
                desired.pod = pod.clone();
                desired.is_gone = is_gone;
            });
            return;
        }
        if is_gone {
            return; // Its worker has ended before.
        }
        let desired = Desired::of(pod.clone());
        self.begin(&mut workers, uid, desired);
    }

    fn begin(
        self: &Arc<Self>,
        workers: &mut HashMap<String, Handle>,
        uid: String,
        desired: Desired,
    ) {
        let handle = Handle {
            desired: watch::Sender::new(desired),
            wake: Arc::new(Notify::new()),
            is_admitted: false,
        };
        let (receiver, wake) = (handle.desired.subscribe(), handle.wake.clone());
        workers.insert(uid.clone(), handle);
        self.tasks.spawn(self.clone().keep(uid, receiver, wake));
        self.changed.notify_one();
    }

    async fn keep(
        self: Arc<Self>,
        uid: String,
        desired: watch::Receiver<Desired>,
        wake: Arc<Notify>,
    ) {
        while !self.stop.is_cancelled() {
            let observed = match observe(self.context.runtime.as_ref(), &uid).await {
                Ok(observed) => observed,
                Err(error) => {
                    tracing::error!(%error, "cannot list what the runtime has");
                    tokio::time::sleep(REMAKE_AFTER).await;
                    continue;
                }
            };
            let now = desired.borrow().clone();
            let refused = self.admit(&uid, &now, &observed).await;
            let worker = Worker::new(
                self.context.clone(),
                desired.clone(),
                wake.clone(),
                self.stop.clone(),
                observed,
                refused,
            );
            match tokio::spawn(worker.run()).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(pod = uid, %error, "a pod's worker broke off");
                    tokio::time::sleep(REMAKE_AFTER).await;
                }
            }
        }
        self.workers.lock().remove(&uid);
        self.changed.notify_one();
        self.statics.note_end();
    }

    /// Tells each worker of its containers' ends.
    async fn follow(self: Arc<Self>, mut events: broadcast::Receiver<ContainerEvent>) {
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => return,
                event = events.recv() => event,
            };
            match event {
                Ok(event) => {
                    if let Some(handle) = self.workers.lock().get(&event.pod_uid) {
                        handle.wake.notify_one();
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    for handle in self.workers.lock().values() {
                        handle.wake.notify_one();
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Takes away the files of a pod that nobody knows. Drivers of its volumes may come later.
    async fn bury(self: Arc<Self>, uid: String) {
        let mut pause = REMAKE_AFTER;
        while let Err(error) = unmount::unmount(&self.context, &uid, Extent::All).await {
            tracing::warn!(error, pod = uid, "the files of a lost pod stay");
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(BURY_PAUSE_MAX);
        }
    }

    /// Takes down what the API server does not know, and takes back its addresses and files.
    async fn adopt_orphans(self: &Arc<Self>, informer: &Informer<Pod>) -> Result<(), RuntimeError> {
        let sandboxes = self.context.first_sandboxes().await?;
        let ids: BTreeSet<_> = sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect();
        if let Err(error) = self.context.network.reclaim(&ids) {
            tracing::warn!(%error, "addresses of lost pods stay taken");
        }
        let (network, stop) = (self.context.network.clone(), self.stop.clone());
        let adopted = sandboxes.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = network.adopt(&adopted) => {}
            }
        });
        let known: BTreeSet<String> = informer
            .list()
            .iter()
            .filter_map(|pod| pod.metadata.uid.clone())
            .collect();
        let directory = self.context.pods_directory();
        let has_sandbox = |uid: &str| sandboxes.iter().any(|found| found.config.pod_uid == uid);
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let uid = entry.file_name().to_string_lossy().into_owned();
            // A pod that came since then has its worker before its directory.
            let has_worker = self.workers.lock().contains_key(&uid);
            if known.contains(&uid) || has_sandbox(&uid) || has_worker {
                continue;
            }
            self.tasks.spawn(self.clone().bury(uid));
        }
        for sandbox in &sandboxes {
            if !known.contains(&sandbox.config.pod_uid) {
                self.take_down(sandbox);
            }
        }
        Ok(())
    }

    /// Begins to end a pod of which only this is left; one that has a worker is its worker's.
    fn take_down(self: &Arc<Self>, sandbox: &SandboxStatus) {
        let uid = &sandbox.config.pod_uid;
        let mut workers = self.workers.lock();
        if workers.contains_key(uid) {
            return;
        }
        let pod = &sandbox.config.pod_name;
        tracing::info!(pod, "takes down a pod that was deleted");
        let desired = Desired {
            is_gone: true,
            ..Desired::of(Arc::new(lost_pod(sandbox)))
        };
        self.begin(&mut workers, uid.clone(), desired);
    }
}

pub(crate) async fn observe(runtime: &dyn Runtime, uid: &str) -> Result<Observed, RuntimeError> {
    let (sandboxes, containers) = runtime.of_pod(uid).await?;
    Ok(Observed {
        runtime: runtime.name(),
        sandboxes,
        containers,
    })
}

/// What is left to know of a pod that the API server, or the directory of static pods, has
/// forgotten.
fn lost_pod(sandbox: &SandboxStatus) -> Pod {
    let config = &sandbox.config;
    Pod {
        metadata: ObjectMeta {
            name: Some(config.pod_name.clone()),
            namespace: Some(config.pod_namespace.clone()),
            uid: Some(config.pod_uid.clone()),
            annotations: Some(config.annotations.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: Vec::<Container>::new(),
            host_network: Some(config.host_network),
            ..PodSpec::default()
        }),
        status: None,
    }
}
