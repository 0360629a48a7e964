//! What the node's state comes to, look by look: which conditions hold, which thresholds are to
//! be acted on. Pure; the rules are upstream's.
//!
//! A threshold that was met stays met until the signal is past it by its minimum reclaim. A
//! condition stays for the transition period after it was last seen, so that it does not flap.

use super::signal::{Condition, Signal};
use super::threshold::{Settings, Threshold};
use coracle_api::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub available: Quantity,
    pub capacity: Quantity,
}

/// A signal that could not be read is not there.
pub type Observations = BTreeMap<Signal, Observation>;

#[derive(Clone, Debug, Default)]
pub struct Tracker {
    first_met: Vec<(Threshold, Duration)>,
    last_seen: BTreeMap<Condition, Duration>,
    /// Met with their grace over, and not yet resolved.
    met: Vec<Threshold>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub conditions: BTreeSet<Condition>,
    /// To be acted on, the most urgent first.
    pub due: Vec<Threshold>,
}

impl Tracker {
    /// `now` is time that never goes back.
    pub fn step(&mut self, settings: &Settings, seen: &Observations, now: Duration) -> Step {
        let mut thresholds = met(&settings.thresholds, seen, false);
        for kept in met(&self.met, seen, true) {
            if !thresholds.contains(&kept) {
                thresholds.push(kept);
            }
        }
        let first_met = |threshold: &Threshold| {
            let known = self.first_met.iter().find(|(known, _)| known == threshold);
            known.map_or(now, |(_, at)| *at)
        };
        self.first_met = thresholds
            .iter()
            .map(|threshold| (*threshold, first_met(threshold)))
            .collect();
        for threshold in &thresholds {
            self.last_seen.insert(threshold.signal.condition(), now);
        }
        // A condition that is seen now holds even without a transition period.
        let is_seen = |at: Duration| at == now || now.saturating_sub(at) < settings.transition;
        self.last_seen.retain(|_, at| is_seen(*at));
        self.met = self
            .first_met
            .iter()
            .filter(|(threshold, at)| now.saturating_sub(*at) >= threshold.grace)
            .map(|(threshold, _)| *threshold)
            .collect();
        self.met.sort_by_key(|threshold| threshold.signal);
        Step {
            conditions: self.last_seen.keys().copied().collect(),
            due: self.met.clone(),
        }
    }
}

/// The thresholds whose signal is too low; `with_reclaim` wants it past them by their minimum.
pub fn met(thresholds: &[Threshold], seen: &Observations, with_reclaim: bool) -> Vec<Threshold> {
    let is_met = |threshold: &&Threshold| {
        let Some(observed) = seen.get(&threshold.signal) else {
            return false;
        };
        let mut bound = threshold.value.of(observed.capacity);
        if let Some(reclaim) = threshold.min_reclaim.filter(|_| with_reclaim) {
            bound = bound.plus(reclaim.of(observed.capacity));
        }
        bound > observed.available
    };
    thresholds.iter().filter(is_met).copied().collect()
}

#[cfg(test)]
mod tests;
