//! Looks at the node every 10 s and acts on what it finds: first room is made of what nobody
//! needs, then one pod is evicted, and the next look waits for its end.
//!
//! Reads control groups and file systems; walks over files alone of pods that have a limit of
//! disk, and of all pods when the disk runs short. Never evicts a critical pod.

use super::local;
use super::message::{self, EVICTED, Message};
use super::observe::{layout, observe};
use super::rank::{Candidate, Layout, rank};
use super::signal::{Condition, Resource};
use super::threshold::{Settings, Threshold};
use super::tracker::{Observations, Tracker, met};
use crate::collect::Collector;
use crate::pods::{Context, Eviction, Pods, asked, state};
use crate::usage;
use crate::usage::pods::PodUsage;
use coracle_client::clock::Instant;
use coracle_client::events::{EventType, reference};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Upstream's periods: of looks, and how long an evicted pod is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const CLEAN_UP_MAX: Duration = Duration::from_secs(30);
/// The grace of a pod that is evicted at once.
const GRACE_SECONDS_AT_ONCE: i64 = 1;

/// What the node is short of. Cheap to clone; clones share.
#[derive(Clone, Debug)]
pub struct Conditions {
    sender: Arc<watch::Sender<BTreeSet<Condition>>>,
    seen: watch::Receiver<BTreeSet<Condition>>,
}

impl Default for Conditions {
    fn default() -> Self {
        let (sender, seen) = watch::channel(BTreeSet::new());
        Self {
            sender: Arc::new(sender),
            seen,
        }
    }
}

impl Conditions {
    pub fn now(&self) -> BTreeSet<Condition> {
        self.sender.borrow().clone()
    }

    /// Ends when they are others than at the last call.
    pub async fn changed(&mut self) {
        // The sender lives as long as this does.
        let _ = self.seen.changed().await;
    }

    fn set(&self, conditions: BTreeSet<Condition>) {
        self.sender.send_if_modified(|known| {
            let is_other = *known != conditions;
            *known = conditions;
            is_other
        });
    }
}

pub struct Keeper {
    context: Arc<Context>,
    collector: Arc<Collector>,
    settings: Settings,
    node: ObjectReference,
    conditions: Conditions,
    tracker: Tracker,
    begun: Instant,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Looks once, so that the first report of the node is true.
    pub async fn begin(
        context: Arc<Context>,
        collector: Arc<Collector>,
        settings: Settings,
        node: ObjectReference,
    ) -> Self {
        let mut keeper = Self {
            conditions: context.pressures.clone(),
            begun: context.clock.monotonic(),
            tracker: Tracker::default(),
            context,
            collector,
            settings,
            node,
        };
        let seen = keeper.observe().await;
        keeper.step(&seen);
        keeper
    }

    pub async fn run(mut self, pods: Pods, stop: CancellationToken) {
        loop {
            let ending = self.look(&pods).await;
            let pause = async {
                if ending.is_empty() {
                    return tokio::time::sleep(LOOK_EVERY).await;
                }
                let all = futures::future::join_all(ending.iter().map(|done| done.cancelled()));
                if tokio::time::timeout(CLEAN_UP_MAX, all).await.is_err() {
                    tracing::warn!("evicted pods do not end");
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = pause => {}
            }
        }
    }

    async fn observe(&self) -> Observations {
        observe(self.context.runtime.as_ref(), &self.context.data_dir).await
    }

    fn step(&mut self, seen: &Observations) -> Vec<Threshold> {
        let now = self.begun.elapsed();
        let step = self.tracker.step(&self.settings, seen, now);
        self.conditions.set(step.conditions);
        step.due
    }

    /// What was evicted, each to be waited for.
    async fn look(&mut self, pods: &Pods) -> Vec<CancellationToken> {
        let seen = self.observe().await;
        let due = self.step(&seen);
        let layout = layout(self.context.runtime.as_ref(), &self.context.data_dir);
        let active = pods.active();
        let uids = active.iter().filter_map(|pod| pod.metadata.uid.clone());
        self.context.disks.retain(&uids.collect::<HashSet<_>>());
        let evicted = self.enforce_limits(pods, &active, layout).await;
        let Some(first) = due.first().filter(|_| evicted.is_empty()) else {
            return evicted;
        };
        let resource = first.signal.resource();
        let text = format!("Attempting to reclaim {resource}");
        let type_ = EventType::Warning;
        let recorder = &self.context.recorder;
        recorder.event(&self.node, type_, "EvictionThresholdMet", text);
        if self.make_room(*first, layout).await {
            return Vec::new();
        }
        let is_done = self.evict_one(pods, active, &due, &seen, layout).await;
        is_done.into_iter().collect()
    }

    /// Evicts all that use more of the disk than they may.
    async fn enforce_limits(
        &self,
        pods: &Pods,
        active: &[Arc<Pod>],
        layout: Layout,
    ) -> Vec<CancellationToken> {
        let mut evicted = Vec::new();
        for pod in active.iter().filter(|pod| local::is_limited(pod)) {
            let Some(disk) = self.context.disk_of(pod).await else {
                continue;
            };
            let Some(text) = local::violation(pod, &disk, layout.has_image_fs) else {
                continue;
            };
            let told = Message {
                text,
                annotations: BTreeMap::new(),
            };
            evicted.extend(self.evict(pods, pod, told, GRACE_SECONDS_AT_ONCE, false));
        }
        evicted
    }

    /// True when nothing runs short any more.
    async fn make_room(&self, threshold: Threshold, layout: Layout) -> bool {
        let (containers, images) = layout.reclaims(threshold.signal);
        if containers {
            self.collector.dead(true).await;
        }
        if images {
            self.collector.unused_images().await;
        }
        if !containers && !images {
            return false;
        }
        let seen = self.observe().await;
        met(&self.settings.thresholds, &seen, true).is_empty()
    }

    async fn evict_one(
        &self,
        pods: &Pods,
        active: Vec<Arc<Pod>>,
        due: &[Threshold],
        seen: &Observations,
        layout: Layout,
    ) -> Option<CancellationToken> {
        let first = due.first()?;
        let resource = first.signal.resource();
        let needs_disk = matches!(resource, Resource::EphemeralStorage | Resource::Inodes);
        let mut candidates = Vec::new();
        for pod in active {
            let usage = self.usage(&pod, needs_disk).await;
            candidates.push(Candidate { pod, usage });
        }
        rank(&mut candidates, first.signal, layout);
        for candidate in &candidates {
            let pod = &candidate.pod;
            let usage = candidate.usage.as_ref();
            let told = message::of(resource, pod, usage, due, seen);
            let done = self.evict(pods, pod, told, self.grace(first, pod), true);
            if done.is_some() {
                return done;
            }
        }
        tracing::warn!(%resource, "the node is short of it, and there is no pod to evict");
        None
    }

    async fn usage(&self, pod: &Arc<Pod>, needs_disk: bool) -> Option<PodUsage> {
        let runtime = self.context.runtime.as_ref();
        let mut usage = usage::pods::of_pod(runtime, pod).await.ok()?;
        if needs_disk {
            usage.disk = self.context.disk_of(pod).await;
        }
        Some(usage)
    }

    fn grace(&self, threshold: &Threshold, pod: &Pod) -> i64 {
        if threshold.is_hard() {
            return GRACE_SECONDS_AT_ONCE;
        }
        let max = self.settings.max_pod_grace_seconds;
        match state::spec(pod).termination_grace_period_seconds {
            Some(own) if max < 0 => own,
            Some(own) => own.min(max),
            None => max.max(0),
        }
    }

    /// None for a pod that is not evicted.
    fn evict(
        &self,
        pods: &Pods,
        pod: &Pod,
        told: Message,
        grace_seconds: i64,
        is_disruption: bool,
    ) -> Option<CancellationToken> {
        if asked::is_critical(pod) {
            tracing::warn!(pod = state::full_name(pod), "a critical pod is not evicted");
            return None;
        }
        let eviction = Eviction {
            reason: EVICTED.to_owned(),
            message: told.text.clone(),
            grace_seconds: Some(grace_seconds),
            disruption: is_disruption.then(|| told.text.clone()),
            done: CancellationToken::new(),
        };
        let done = pods.evict(pod, eviction)?;
        let (object, type_) = (reference(pod), EventType::Warning);
        let recorder = &self.context.recorder;
        recorder.annotated(&object, told.annotations, type_, EVICTED, told.text);
        Some(done)
    }
}
