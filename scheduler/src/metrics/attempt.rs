//! One attempt to schedule a pod, off its cycle: how it ends, and the steps of its binding.

use super::{ATTEMPTS_MAX, Ended, Metrics, OfProfile, add};
use crate::laps::{Laps, Stage, Status};
use crate::queue::Attempt;
use coracle_client::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where one attempt is counted. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Counting {
    metrics: Arc<Metrics>,
    profile: Arc<OfProfile>,
    started: Instant,
    is_sampled: bool,
}

impl Counting {
    pub fn new(
        metrics: &Arc<Metrics>,
        profile: &Arc<OfProfile>,
        started: Instant,
        is_sampled: bool,
    ) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            profile: Arc::clone(profile),
            started,
            is_sampled,
        }
    }

    /// The cycle is over: what it kept is taken over.
    pub fn decided(&self, laps: &mut Laps, now: Instant) {
        let took = now.saturating_duration_since(self.started);
        self.metrics.algorithm.add(took);
        self.metrics.take(&self.profile, laps);
    }

    /// The attempt is over.
    pub fn ended(&self, how: Ended, now: Instant) {
        let took = now.saturating_duration_since(self.started);
        self.profile.attempts[how as usize].add(took);
    }

    /// The pod is bound.
    pub fn scheduled(&self, attempt: &Attempt, now: Instant) {
        self.ended(Ended::Scheduled, now);
        self.metrics.tries.add(u64::from(attempt.number));
        let number = usize::try_from(attempt.number).unwrap_or(ATTEMPTS_MAX);
        let place = number.clamp(1, ATTEMPTS_MAX) - 1;
        let took = now.saturating_duration_since(attempt.first_active);
        self.metrics.since_first[place].add(took);
        let flushed = u64::from(attempt.was_flushed);
        let after_flush = &self.metrics.after_flush;
        after_flush.fetch_add(flushed, Ordering::Relaxed);
    }

    /// All plugins of a point are done.
    pub fn point(&self, stage: Stage, status: Status, since: Instant, now: Instant) {
        let took = now.saturating_duration_since(since);
        self.profile.point(stage, status, took);
    }

    /// One plugin is done; counted of a part of the attempts.
    pub fn plugin(
        &self,
        plugin: &'static str,
        (stage, status): (Stage, Status),
        since: Instant,
        now: Instant,
    ) {
        if self.is_sampled {
            let took = now.saturating_duration_since(since);
            let key = (plugin, stage, status);
            add(&mut self.metrics.plugins.lock(), key, took);
        }
    }

    /// The pod had to wait for Permit.
    pub fn permitted(&self, status: Status, since: Instant, now: Instant) {
        let took = now.saturating_duration_since(since);
        self.metrics.permit_waits[status as usize].add(took);
    }
}
