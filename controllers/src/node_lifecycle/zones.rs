//! Which nodes may lose their pods now, judged zone by zone. Pure.
//!
//! A node that is not ready waits here for its NoExecute taint. A zone hands these out slowly,
//! and the more slowly the more of it is not ready: the fault may be ours. When no node of any
//! zone is ready the fault is most likely ours: nothing is handed out, and what was is taken back.
//! Invariant: a node waits in its own zone alone, once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Instant;
use k8s_openapi::api::core::v1::Node;

use super::limiter::Limiter;
use super::node::{self, Readiness};

/// Nodes a second that a zone may lose, as upstream's `--node-eviction-rate`.
const RATE: f64 = 0.1;
/// The same for a zone that is badly off, as `--secondary-node-eviction-rate`.
const REDUCED_RATE: f64 = 0.01;
/// A zone up to this size that is badly off loses none, as `--large-cluster-size-threshold`.
const LARGE_ABOVE: usize = 50;
/// The part not ready that makes a zone badly off, as `--unhealthy-zone-threshold`.
const UNHEALTHY_PERCENT: usize = 55;
/// Fewer than this never make a zone badly off.
const UNHEALTHY_MIN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Initial,
    Normal,
    PartialDisruption,
    FullDisruption,
}

#[derive(Debug)]
struct Zone {
    state: State,
    limiter: Limiter,
    waiting: VecDeque<String>,
    /// Handed out, and not seen on the node yet.
    granted: BTreeSet<String>,
}

/// What a pass found out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    /// Nodes that get the taint now.
    pub(super) taint: Vec<String>,
    /// Nodes that lose it now: every node looks lost.
    pub(super) spare: Vec<String>,
    /// Some node came back after all were lost: nobody's silence counts before now.
    pub(super) forgive: bool,
    pub(super) changes: Vec<(String, State)>,
    pub(super) look_again: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Zones {
    by_name: BTreeMap<String, Zone>,
    /// As of the last pass: every node of every zone.
    all_lost: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    ready: usize,
    not_ready: usize,
}

impl Count {
    fn state(self) -> State {
        let all = self.ready + self.not_ready;
        if self.ready == 0 && self.not_ready > 0 {
            State::FullDisruption
        } else if self.not_ready >= UNHEALTHY_MIN && self.not_ready * 100 >= all * UNHEALTHY_PERCENT
        {
            State::PartialDisruption
        } else {
            State::Normal
        }
    }

    fn rate(self, state: State) -> f64 {
        match state {
            State::PartialDisruption if self.ready + self.not_ready > LARGE_ABOVE => REDUCED_RATE,
            State::PartialDisruption => 0.0,
            // A zone that is wholly lost while others are not is lost for sure.
            State::Initial | State::Normal | State::FullDisruption => RATE,
        }
    }
}

/// Whether a change of a node can change what a pass finds out.
pub(super) fn matters(old: &Node, new: &Node) -> bool {
    let what = |node: &Node| {
        (
            node::readiness(node),
            node::is_evicting(node),
            node::is_excluded(node),
            node::zone(node),
        )
    };
    what(old) != what(new)
}

impl Zones {
    pub(super) fn pass(&mut self, nodes: &[Arc<Node>], now: Instant) -> Pass {
        let mut pass = Pass::default();
        let mut counts = BTreeMap::<String, Count>::new();
        let mut candidates = BTreeMap::<String, Vec<&str>>::new();
        for node in nodes {
            let zone = node::zone(node);
            let readiness = node::readiness(node);
            if !node::is_excluded(node) {
                let count = counts.entry(zone.clone()).or_default();
                match readiness {
                    Readiness::Ready => count.ready += 1,
                    _ => count.not_ready += 1,
                }
            }
            let here = candidates.entry(zone).or_default();
            let is_lost = matches!(readiness, Readiness::NotReady | Readiness::Unknown);
            if is_lost && !node::is_evicting(node) {
                here.push(node::name(node));
            }
        }
        self.by_name.retain(|name, _| candidates.contains_key(name));
        for (name, lost) in &candidates {
            self.zone(name, now).line_up(lost);
        }
        self.judge(&counts, now, &mut pass);
        if self.all_lost {
            let tainted = nodes.iter().filter(|node| node::is_evicting(node));
            pass.spare = tainted.map(|node| node::name(node).to_owned()).collect();
        }
        for zone in self.by_name.values_mut() {
            zone.hand_out(now, &mut pass);
        }
        pass
    }

    /// The taint could not be written: the node waits again.
    pub(super) fn take_back(&mut self, node: &str) {
        for zone in self.by_name.values_mut() {
            zone.granted.remove(node);
        }
    }

    fn zone(&mut self, name: &str, now: Instant) -> &mut Zone {
        self.by_name.entry(name.to_owned()).or_insert_with(|| Zone {
            state: State::Initial,
            limiter: Limiter::new(RATE, now),
            waiting: VecDeque::new(),
            granted: BTreeSet::new(),
        })
    }

    /// Brings states and rates up to date.
    fn judge(&mut self, counts: &BTreeMap<String, Count>, now: Instant, pass: &mut Pass) {
        let is_lost = |count: &Count| count.state() == State::FullDisruption;
        // When no node counts, none can be said to be lost.
        let all_lost = !counts.is_empty() && counts.values().all(is_lost);
        pass.forgive = self.all_lost && !all_lost;
        self.all_lost = all_lost;
        for (name, zone) in &mut self.by_name {
            let count = counts.get(name).copied().unwrap_or_default();
            let state = count.state();
            if zone.state != state {
                zone.state = state;
                pass.changes.push((name.clone(), state));
            }
            let rate = if all_lost { 0.0 } else { count.rate(state) };
            zone.limiter.set_rate(rate, now);
        }
    }
}

impl Zone {
    /// Whoever is new goes to the end; whoever is no longer lost leaves.
    fn line_up(&mut self, lost: &[&str]) {
        let there: BTreeSet<&str> = lost.iter().copied().collect();
        self.waiting.retain(|name| there.contains(name.as_str()));
        self.granted.retain(|name| there.contains(name.as_str()));
        let known: BTreeSet<String> = self.waiting.iter().cloned().collect();
        for name in lost {
            if !known.contains(*name) && !self.granted.contains(*name) {
                self.waiting.push_back((*name).to_owned());
            }
        }
    }

    fn hand_out(&mut self, now: Instant, pass: &mut Pass) {
        while !self.waiting.is_empty() && self.limiter.try_take(now) {
            let next = self.waiting.pop_front();
            self.granted.extend(next.clone());
            pass.taint.extend(next);
        }
        if self.waiting.is_empty() {
            return;
        }
        if let Some(wait) = self.limiter.wait(now) {
            pass.look_again = Some(pass.look_again.map_or(wait, |other| other.min(wait)));
        }
    }
}

#[cfg(test)]
mod tests;
