//! Which pod is next, and which wait for what.
//!
//! A pod waits in one of three places: active (ready, in the order of QueueSort), backoff (ready
//! again when its delay has passed), or unschedulable (until a change of the world can help it, or
//! it has waited long enough to be tried anyway). While a pod is in flight, changes of the world
//! are kept, so that one that came during its cycle is not lost.
//!
//! Invariants: a known pod is in exactly one place or in flight; a pod is never handed out twice
//! at a time; the queue holds at most the pods that the API shows.

use crate::framework::{Point, Profile, Profiles, SortKey, WorldChange};
use crate::pod_info::PodInfo;
use coracle_client::clock::Instant;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

mod state;

pub use state::Figures;
use state::State;

/// Upstream's bounds of the delay after a failed attempt; it doubles with each.
const BACKOFF: Backoff = Backoff {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(10),
};
/// Nobody waits longer than this without another look, as upstream flushes.
const UNSCHEDULABLE_MAX: Duration = Duration::from_secs(5 * 60);
/// Changes kept for pods in flight; past this they count as a change that may help anyone.
const CHANGES_MAX: usize = 4096;

/// How long a pod waits after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub initial: Duration,
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        BACKOFF
    }
}

impl Backoff {
    fn after(self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(16);
        self.initial.saturating_mul(1 << doublings).min(self.max)
    }
}

/// A pod handed out for a cycle.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub pod: Arc<PodInfo>,
    /// How many cycles it has had, this one included.
    pub number: u32,
    /// When it was first ready for a cycle.
    pub first_active: Instant,
    /// It is tried again because it waited long enough, and not because something may help.
    pub was_flushed: bool,
}

/// How many pods wait where, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    pub active: usize,
    pub backoff: usize,
    pub unschedulable: usize,
    pub in_flight: usize,
}

#[derive(Debug)]
pub struct Queue {
    profiles: Profiles,
    state: Mutex<State>,
    changed: Notify,
}

impl Queue {
    /// With upstream's delays.
    pub fn new(profile: Profile) -> Self {
        Self::of(Profiles::new([profile]), Backoff::default())
    }

    pub fn of(profiles: Profiles, backoff: Backoff) -> Self {
        Self {
            profiles,
            state: Mutex::new(State::new(backoff)),
            changed: Notify::new(),
        }
    }

    /// A pod that waits for a node, new or changed.
    pub fn set(&self, pod: Arc<PodInfo>, now: Instant) {
        self.put(pod, true, now);
    }

    /// A pod that is in flight was changed; one that is not here stays out.
    pub fn set_known(&self, pod: Arc<PodInfo>, now: Instant) {
        self.put(pod, false, now);
    }

    fn put(&self, pod: Arc<PodInfo>, may_be_new: bool, now: Instant) {
        let gated_by = self
            .profiles
            .of(&pod)
            .into_iter()
            .flat_map(|profile| profile.at(Point::PreEnqueue))
            .find(|(_, plugin)| !plugin.pre_enqueue(&pod))
            .map(|(_, plugin)| plugin.name());
        let key = self.sort_key(&pod);
        let mut state = self.state.lock();
        if may_be_new || state.is_known(&pod.uid) {
            state.set(pod, gated_by, key, now);
        }
        drop(state);
        self.changed.notify_one();
    }

    fn may_enter(&self, pod: &PodInfo) -> bool {
        let profile = self.profiles.of(pod).into_iter();
        let mut plugins = profile.flat_map(|profile| profile.at(Point::PreEnqueue));
        plugins.all(|(_, plugin)| plugin.pre_enqueue(pod))
    }

    /// Whether a plugin that keeps the pod out of the queue can be helped by the change.
    fn opens(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        let profile = self.profiles.of(pod).into_iter();
        let mut plugins = profile.flat_map(|profile| profile.at(Point::PreEnqueue));
        plugins.any(|(_, plugin)| plugin.can_help(change, pod)) && self.may_enter(pod)
    }

    pub fn remove(&self, uid: &str) {
        self.state.lock().remove(uid);
    }

    pub fn is_known(&self, uid: &str) -> bool {
        self.state.lock().is_known(uid)
    }

    /// Waits for the next pod. Dropping the future loses nothing.
    pub async fn next(&self) -> Attempt {
        loop {
            let wake = {
                let mut state = self.state.lock();
                let now = Instant::now();
                state.flush(now);
                if let Some(attempt) = state.take(now) {
                    return attempt;
                }
                state.next_flush()
            };
            match wake {
                Some(at) => drop(tokio::time::timeout_at(at, self.changed.notified()).await),
                None => self.changed.notified().await,
            }
        }
    }

    /// The attempt found a node and bound the pod, or the pod is no longer ours.
    pub fn done(&self, uid: &str) {
        self.state.lock().done(uid);
    }

    /// No node fits. `plugins` names who refused; a change that can help one of them, also one
    /// that came during the attempt, brings the pod back.
    pub fn unschedulable(&self, attempt: &Attempt, plugins: Vec<&'static str>, now: Instant) {
        let mut state = self.state.lock();
        let helped = state
            .changes_during(&attempt.pod.uid)
            .is_none_or(|mut changes| {
                changes.any(|change| self.helps(change, &plugins, &attempt.pod))
            });
        state.put_back(attempt, plugins, helped, now);
        drop(state);
        self.changed.notify_one();
    }

    /// The attempt failed for another reason than the pod: it is tried again after its delay.
    pub fn retry(&self, attempt: &Attempt, now: Instant) {
        self.state.lock().put_back(attempt, Vec::new(), true, now);
        self.changed.notify_one();
    }

    /// The world changed: pods it can help leave the unschedulable ones.
    pub fn world_changed(&self, change: WorldChange, now: Instant) {
        let mut state = self.state.lock();
        let woken = state.waiting_that(|pod, plugins| self.helps(&change, plugins, pod));
        let event = change.label();
        for uid in woken {
            state.wake(&uid, event, now);
        }
        for uid in state.gated_that(|pod| self.opens(&change, pod)) {
            state.open(&uid, event, now);
        }
        state.keep_change(change);
        drop(state);
        self.changed.notify_one();
    }

    pub fn depth(&self) -> Depth {
        self.state.lock().depth()
    }

    /// All pods, each with its place; complains of what contradicts itself.
    #[cfg(test)]
    pub fn places(&self) -> Result<Vec<(Arc<PodInfo>, &'static str)>, String> {
        self.state.lock().places()
    }

    /// For metrics: looks at every pod that waits.
    pub fn figures(&self) -> Figures {
        self.state.lock().figures()
    }

    fn helps(&self, change: &WorldChange, plugins: &[&'static str], pod: &PodInfo) -> bool {
        let Some(profile) = self.profiles.of(pod) else {
            return false;
        };
        // What was kept for the pod itself never was in its way.
        if matches!(change, WorldChange::PodGone(gone) if gone.uid == pod.uid) {
            return false;
        }
        // Nobody refused it: there was no node at all.
        plugins.is_empty()
            || plugins
                .iter()
                .filter_map(|name| profile.by_name(name))
                .any(|plugin| plugin.can_help(change, pod))
    }

    /// The queue is ordered by the one plugin that sorts; the others leave the key at zero.
    fn sort_key(&self, pod: &PodInfo) -> impl Fn(u64) -> SortKey + use<> {
        let keys = self
            .profiles
            .of(pod)
            .into_iter()
            .flat_map(|profile| profile.at(Point::QueueSort))
            .map(|(_, plugin)| plugin.sort_key(pod, 0).0);
        let first: i64 = keys.sum();
        move |entered| (first, entered)
    }
}

#[cfg(test)]
mod tests;
