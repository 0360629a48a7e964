//! Filter: rejects a node whose domain lacks the pods that the pod must be with, has pods that it
//! must not be with, or has pods that must not be with it. Score: prefers nodes by the weights of
//! the preferred terms, the pod's own and those of the pods there.
//!
//! Pods there also draw to them who meets their required terms of affinity, with a weight of its own.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, SCORE_MAX, Slot, Verdict, WorldChange};
use crate::node_facts::NodeFacts;
use crate::node_info::NodeInfo;
use crate::pod_info::{AffinityTerm, PodInfo};
use crate::views::Namespaces;
use coracle_client::ObjectKey;

mod meetings; // Who meets whose terms where, for the filter.
mod pulls; // Which domains draw or repel, for the score.
mod terms; // Terms of the pod that is looked at, with the namespaces they select.

use meetings::Meetings;
use pulls::Pulls;
use terms::meets_all;

const NAME: &str = "InterPodAffinity";
const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Upstream's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Args {
    /// What a required term of affinity of a pod there weighs when the pod meets it.
    pub hard_pod_affinity_weight: i64,
    /// Leaves preferred terms of pods there aside where the pod itself has none.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            hard_pod_affinity_weight: 1,
            ignore_preferred_terms_of_existing_pods: false,
        }
    }
}

#[derive(Debug)]
pub struct InterPodAffinity {
    namespaces: Namespaces,
    args: Args,
}

impl InterPodAffinity {
    pub fn new(namespaces: Namespaces, args: Args) -> Self {
        Self { namespaces, args }
    }

    fn namespace_labels(&self, pod: &PodInfo) -> Option<crate::selector::Labels> {
        let key = ObjectKey::new("", pod.key.namespace.as_str());
        self.namespaces.get(&key)
    }

    fn pod_can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        let [near, far] = pod.required_terms();
        let [near, far] = [near, far].map(|terms| terms::resolved(terms, &self.namespaces));
        // The first of pods that want to be with each other may go anywhere.
        let may_be_first = || meets_all(&near, &pod.traits);
        match change {
            WorldChange::PodPlaced(other) => meets_all(&near, &other.traits),
            WorldChange::PodUpdated { old, new } => {
                let ends = |term: &AffinityTerm| {
                    term.matches(&old.traits, None) && !term.matches(&new.traits, None)
                };
                let (met, meets) = (meets_all(&near, &old.traits), meets_all(&near, &new.traits));
                !met && meets || met && !meets && may_be_first() || far.iter().any(ends)
            }
            WorldChange::PodGone(other) => {
                let [_, theirs] = other.required_terms();
                let theirs = terms::resolved(theirs, &self.namespaces);
                far.iter().any(|term| term.matches(&other.traits, None))
                    || theirs.iter().any(|term| term.matches(&pod.traits, None))
                    || meets_all(&near, &other.traits) && may_be_first()
            }
            _ => false,
        }
    }
}

/// Whether a node can change something for a pod with these terms of affinity and anti-affinity.
fn node_can_help(change: &WorldChange, [near, far]: [&[AffinityTerm]; 2]) -> bool {
    let has = |node: &NodeFacts, term: &AffinityTerm| node.label(&term.topology_key).is_some();
    match change {
        // Others' terms keep a pod without terms away, and a node without the key is open to pods
        // with terms of anti-affinity.
        WorldChange::NodeAdded(node) => {
            near.is_empty() || !far.is_empty() || near.iter().any(|term| has(node, term))
        }
        // By which of its labels others' terms keep the pod away is not known here.
        _ => change.changes(|old, new| old.labels != new.labels),
    }
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER_AND_SCORE
    }

    fn pre_filter(&self, pod: &PodInfo, world: &Snapshot, slot: &mut Slot) -> PreFilter {
        let labels = self.namespace_labels(pod);
        let meetings = Meetings::new(pod, labels, &self.namespaces, &world.nodes);
        if meetings.is_indifferent() {
            return PreFilter::Skip;
        }
        slot.set(meetings);
        PreFilter::Filter
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let Some(meetings) = slot.get::<Meetings>() else {
            return Verdict::Fit;
        };
        if !meetings.allow_near(pod, node) {
            Verdict::Unresolvable(Reason::Text(REASON_AFFINITY))
        } else if !meetings.allow_far(node) {
            Verdict::Unschedulable(Reason::Text(REASON_ANTI_AFFINITY))
        } else if meetings.are_refused(node) {
            Verdict::Unschedulable(Reason::Text(REASON_EXISTING))
        } else {
            Verdict::Fit
        }
    }

    fn add_pod(&self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        if let Some(meetings) = slot.get_mut::<Meetings>() {
            meetings.add(pod, other, node, 1);
        }
    }

    fn remove_pod(&self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        if let Some(meetings) = slot.get_mut::<Meetings>() {
            meetings.add(pod, other, node, -1);
        }
    }

    fn pre_score(
        &self,
        pod: &PodInfo,
        _nodes: &[&NodeInfo],
        world: &Snapshot,
        slot: &mut Slot,
    ) -> bool {
        let prefers = pod.terms().is_some_and(|all| !all.preferred.is_empty());
        if self.args.ignore_preferred_terms_of_existing_pods && !prefers {
            return false;
        }
        let labels = self.namespace_labels(pod);
        let pulls = Pulls::new(
            pod,
            labels.as_ref(),
            self.args,
            &self.namespaces,
            &world.nodes,
        );
        let Some(pulls) = pulls else {
            return false;
        };
        slot.set(pulls);
        true
    }

    fn score(&self, _pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, slot: &Slot) -> i64 {
        let pulls = slot.get::<Pulls>();
        pulls.map_or(0, |pulls| pulls.on(node))
    }

    fn normalize(&self, _nodes: &[&NodeInfo], scores: &mut [i64], _slot: &Slot) {
        let least = scores.iter().copied().min().unwrap_or(0);
        let range = scores.iter().copied().max().unwrap_or(0) - least;
        for score in scores {
            *score = if range > 0 {
                (SCORE_MAX as f64 * ((*score - least) as f64 / range as f64)) as i64
            } else {
                0
            };
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself => true,
            WorldChange::NodeAdded(_) | WorldChange::NodeUpdated { .. } => {
                node_can_help(change, pod.required_terms())
            }
            _ => self.pod_can_help(change, pod),
        }
    }
}

#[cfg(test)]
mod tests;
