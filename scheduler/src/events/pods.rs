//! Pods as they come from the server. Only what the scheduler needs of each is kept.
//!
//! A pod is known by its uid: one that took the place of another of its name is another pod.

use super::{World, guarded};
use crate::pod_info::{PodInfo, TraitsTable};
use coracle_client::clock::Instant;
use coracle_client::informer::{Event, Filter, Informers, Sink};
use k8s_openapi::api::core::v1::Pod;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Keeps the world's pods from now on; false when it is stopped before all were read.
pub async fn keep(world: &World, informers: &Informers, stop: &CancellationToken) -> bool {
    let (synced, mut is_synced) = watch::channel(false);
    let sink = Pods::new(world.clone(), synced);
    let living = Filter::fields("status.phase!=Succeeded,status.phase!=Failed");
    let (informers, stop) = (informers.clone(), stop.clone());
    tokio::spawn(async move { informers.follow(living, sink, stop).await });
    is_synced.wait_for(|is_synced| *is_synced).await.is_ok()
}

pub struct Pods {
    world: World,
    traits: TraitsTable,
    known: HashMap<String, Arc<PodInfo>>,
    /// What the list under way has shown so far; the rest is gone when it is complete.
    listed: HashSet<String>,
    synced: watch::Sender<bool>,
}

impl Pods {
    pub fn new(world: World, synced: watch::Sender<bool>) -> Self {
        Self {
            world,
            traits: TraitsTable::default(),
            known: HashMap::new(),
            listed: HashSet::new(),
            synced,
        }
    }

    fn info(&self, pod: Pod) -> Arc<PodInfo> {
        Arc::new(PodInfo::sharing(Arc::new(pod), &self.traits))
    }

    fn set(&mut self, pod: Pod) {
        let old = pod.metadata.uid.as_ref();
        let old = old.and_then(|uid| self.known.get(uid)).cloned();
        let version = pod.metadata.resource_version.as_deref();
        // What a list shows again is no news, and once is enough to keep it.
        if old
            .as_ref()
            .is_some_and(|old| Some(&*old.resource_version) == version)
        {
            return;
        }
        let pod = PodInfo::following(Arc::new(pod), &self.traits, old.as_deref());
        let pod = Arc::new(pod);
        self.world.set_pod(&pod, old.as_ref(), Instant::now());
        self.known.insert(pod.uid.clone(), pod);
    }

    fn gone(&mut self, pod: &Arc<PodInfo>) {
        let now = Instant::now();
        self.world.withdrawn(pod, now);
        self.world.gone(Arc::clone(pod), now);
        self.known.remove(&pod.uid);
    }

    /// What is known of a pod that makes something panic is as it was before, so that the next list
    /// is another chance.
    fn set_guarded(&mut self, pod: Pod) {
        guarded("Pod", &uid_of(&pod), || self.set(pod));
    }
}

fn uid_of(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

impl Sink<Pod> for Pods {
    fn apply(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.insert(uid_of(&pod));
                self.set_guarded(pod);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let known = self.known.values();
                let gone = known.filter(|pod| !listed.contains(&pod.uid));
                for pod in gone.cloned().collect::<Vec<_>>() {
                    guarded("Pod", &pod.uid, || self.gone(&pod));
                }
                self.synced.send_replace(true);
            }
            Event::Apply(pod) => self.set_guarded(pod),
            Event::Delete(pod) => guarded("Pod", &uid_of(&pod), || {
                let pod = self.info(pod);
                self.gone(&pod);
            }),
        }
    }
}

#[cfg(test)]
mod tests;
