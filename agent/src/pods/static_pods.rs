//! Static pods: those that files in a directory of this node describe, server or no server.
//!
//! The directory is looked at when something in it changes, and at upstream's interval. A file
//! that changed is another pod, which begins when the former one is gone. A file that cannot be
//! used is told of once; the pod that it described before goes on, and others are not touched.
//! What the API server is shown of them is `mirror`'s.

mod directory; // The files, read again when they changed.
mod mirror; // Their images in the API server.

use super::manifest::{SEEN, is_static, with_status_of};
use super::{Handle, Pods, Shared, lost_pod, worker::Desired};
use crate::runtime::{RuntimeError, SandboxStatus};
use directory::Directory;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Upstream's `fileCheckFrequency`.
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// Namespace and name.
type FullName = (String, String);

/// What is known of them by all of the pods.
#[derive(Debug, Default)]
pub struct Statics {
    /// Those that run or are to run, as their files have them.
    wanted: Mutex<BTreeMap<FullName, Arc<Pod>>>,
    /// What the API server has of them, and of those that were.
    mirrors: Mutex<HashMap<FullName, Arc<Pod>>>,
    /// A worker has ended: its successor may begin.
    ended: Notify,
    /// There is something to do about mirrors.
    changed: Notify,
}

impl Statics {
    /// Of a worker: the successor may begin, the mirror may go.
    pub fn note_end(&self) {
        self.ended.notify_one();
        self.changed.notify_one();
    }
}

/// Of two files with one name the first is taken.
fn by_name(pods: Vec<Pod>) -> BTreeMap<FullName, Pod> {
    let mut all = BTreeMap::new();
    for pod in pods {
        all.entry(full_name(&pod)).or_insert(pod);
    }
    all
}

/// What a former agent ran by files that have changed since, or have gone.
fn outdated<'a>(
    sandboxes: &'a [SandboxStatus],
    wanted: &BTreeMap<FullName, Pod>,
) -> Vec<&'a SandboxStatus> {
    let is_outdated = |sandbox: &&SandboxStatus| {
        let uid = &sandbox.config.pod_uid;
        let is_wanted = |pod: &Pod| pod.metadata.uid.as_ref() == Some(uid);
        is_static(&lost_pod(sandbox)) && !wanted.values().any(is_wanted)
    };
    sandboxes.iter().filter(is_outdated).collect()
}

/// The name of the static pod that a worker runs, or ends.
fn static_name(handle: &Handle) -> Option<FullName> {
    let pod = handle.desired.borrow().pod.clone();
    is_static(&pod).then(|| full_name(&pod))
}

fn full_name(pod: &Pod) -> FullName {
    let meta = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&meta.namespace), text(&meta.name))
}

impl Pods {
    /// Begins with what the directory holds now; goes on until the stop.
    pub async fn run_static(&self, path: &Path, node_name: &str) -> Result<(), RuntimeError> {
        let shared = self.shared.clone();
        let (directory, wanted) = read(Directory::new(path, node_name)).await;
        if let Some(wanted) = wanted {
            let sandboxes = shared.context.first_sandboxes().await?;
            for sandbox in outdated(&sandboxes, &wanted) {
                shared.take_down(sandbox);
            }
            shared.apply(wanted);
        }
        let tasks = shared.tasks.clone();
        tasks.spawn(shared.follow_directory(directory));
        Ok(())
    }

    /// Shows the API server what runs. The informer has listed by then.
    pub fn mirror_statics(&self, node_name: &str) {
        let mirroring = mirror::run(self.shared.clone(), node_name.to_owned());
        self.shared.tasks.spawn(mirroring);
    }
}

impl Shared {
    async fn follow_directory(self: Arc<Self>, mut directory: Directory) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.statics.ended.notified() => {}
                () = directory.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let wanted;
            (directory, wanted) = read(directory).await;
            if let Some(wanted) = wanted {
                self.apply(wanted);
            }
        }
    }

    /// Lets pods begin and end.
    fn apply(self: &Arc<Self>, next: BTreeMap<FullName, Pod>) {
        let mut workers = self.workers.lock();
        let mut wanted = self.statics.wanted.lock();
        let mut is_changed = false;
        for (name, pod) in wanted.iter() {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let stays = next
                .get(name)
                .is_some_and(|next| next.metadata.uid == pod.metadata.uid);
            if let Some(handle) = workers.get(uid).filter(|_| !stays) {
                handle.desired.send_modify(|desired| desired.is_gone = true);
            }
            is_changed |= !stays;
        }
        wanted.retain(|name, pod| {
            next.get(name)
                .is_some_and(|next| next.metadata.uid == pod.metadata.uid)
        });
        for (name, mut pod) in next {
            let is_running = |handle: &Handle| static_name(handle).as_ref() == Some(&name);
            if wanted.contains_key(&name) || workers.values().any(is_running) {
                continue; // A former one that is still there is waited for.
            }
            let now = self.context.clock.now().to_string();
            let annotations = pod.metadata.annotations.get_or_insert_default();
            annotations.insert(SEEN.to_owned(), now);
            let pod = Arc::new(pod);
            self.hold_all(std::slice::from_ref(&pod));
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            tracing::info!(pod = name.1, namespace = name.0, "runs a static pod");
            wanted.insert(name, pod.clone());
            self.begin(&mut workers, uid, Desired::of(pod));
            is_changed = true;
        }
        if is_changed {
            self.statics.changed.notify_one();
        }
    }

    /// What the API server has of a static pod of this node; `is_gone` when it has no more.
    pub(super) fn note_mirror(&self, mirror: &Arc<Pod>, is_gone: bool) {
        let name = full_name(mirror);
        {
            let mut mirrors = self.statics.mirrors.lock();
            let is_known = |known: &Arc<Pod>| known.metadata.uid == mirror.metadata.uid;
            if !is_gone {
                mirrors.insert(name.clone(), mirror.clone());
            } else if mirrors.get(&name).is_some_and(is_known) {
                mirrors.remove(&name);
            }
        }
        let workers = self.workers.lock();
        let wanted = self.statics.wanted.lock().get(&name).cloned();
        if let Some(pod) = wanted
            && let Some(uid) = &pod.metadata.uid
            && let Some(handle) = workers.get(uid)
        {
            let known = self.statics.mirrors.lock().get(&name).cloned();
            let known = known.filter(|known| mirror::shows(known, &pod));
            handle.desired.send_modify(|desired| {
                desired.pod = Arc::new(with_status_of(&pod, known.as_deref()));
                desired.mirror = known;
            });
        }
        self.statics.changed.notify_one();
    }
}

/// None when the directory cannot be read now.
async fn read(mut directory: Directory) -> (Directory, Option<BTreeMap<FullName, Pod>>) {
    let reading = tokio::task::spawn_blocking(move || {
        let pods = directory.read();
        (directory, pods.map(by_name))
    });
    match reading.await {
        Ok(read) => read,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests;
