//! Which domains draw the pod, and which repel it: weights of preferred terms, summed.

use super::{Args, terms};
use crate::node_facts::{ByValue, KeyPlace};
use crate::node_info::NodeInfo;
use crate::pod_info::{AffinityTerm, Memo, PodInfo, Traits, WeightedTerm};
use crate::selector::Labels;
use crate::views::Namespaces;
use std::sync::Arc;

/// Weights by topology key, then by value. A handful of keys at most.
#[derive(Clone, Debug, Default)]
pub struct Pulls(Vec<(Arc<str>, ByValue<i64>, KeyPlace)>);

impl Pulls {
    /// `None` where nothing draws and nothing repels.
    pub fn new(
        pod: &PodInfo,
        namespace_labels: Option<&Labels>,
        args: Args,
        namespaces: &Namespaces,
        nodes: &[NodeInfo],
    ) -> Option<Self> {
        let own = pod.terms().into_iter().flat_map(|own| own.preferred.iter());
        let own = own.map(|one| WeightedTerm {
            term: terms::resolve(&one.term, namespaces),
            weight: one.weight,
        });
        let own: Vec<WeightedTerm> = own.collect();
        let (mut pulls, mut weights) = (Self::default(), Memo::default());
        for node in nodes {
            for alike in &node.alike {
                // Pods without terms say nothing of a pod without.
                if own.is_empty() && alike.traits.terms.is_none() {
                    continue;
                }
                let weights = weights.get(&alike.traits, |other| {
                    let theirs = theirs(pod, other, namespace_labels, args);
                    let own = own.iter().filter(|one| one.term.matches(other, None));
                    let own = own.map(|one| (Arc::clone(&one.term.topology_key), one.weight));
                    own.chain(theirs).collect::<Vec<_>>()
                });
                for (key, weight) in weights {
                    pulls.add(node, key, weight * alike.pods);
                }
            }
        }
        let is_felt = pulls.0.iter().any(|(_, by_value, _)| !by_value.is_empty());
        is_felt.then_some(pulls)
    }

    fn add(&mut self, node: &NodeInfo, key: &Arc<str>, weight: i64) {
        let known = self.0.iter().position(|(known, ..)| known == key);
        let known = known.unwrap_or_else(|| {
            let (by_value, place) = (ByValue::default(), KeyPlace::default());
            self.0.push((Arc::clone(key), by_value, place));
            self.0.len() - 1
        });
        let (_, by_value, place) = &mut self.0[known];
        let Some(value) = node.facts.labels.value(key, place) else {
            return;
        };
        match by_value.get_mut(&**value) {
            Some(known) => *known += weight,
            None => drop(by_value.insert(Arc::clone(value), weight)),
        }
    }

    pub fn on(&self, node: &NodeInfo) -> i64 {
        let pulls = self.0.iter();
        let pulls = pulls.filter_map(|(key, by_value, _)| by_value.get(node.label(key)?));
        pulls.sum()
    }
}

/// The keys and weights of terms of others that the pod meets.
fn theirs(
    pod: &PodInfo,
    other: &Traits,
    namespace_labels: Option<&Labels>,
    args: Args,
) -> Vec<(Arc<str>, i64)> {
    let Some(terms) = other.terms.as_deref() else {
        return Vec::new();
    };
    let is_met = |term: &AffinityTerm| term.matches(&pod.traits, namespace_labels);
    let hard = args.hard_pod_affinity_weight;
    let required = terms
        .affinity
        .iter()
        .filter(|term| hard > 0 && is_met(term));
    let required = required.map(|term| (Arc::clone(&term.topology_key), hard));
    let preferred = terms.preferred.iter().filter(|one| is_met(&one.term));
    let preferred = preferred.map(|one| (Arc::clone(&one.term.topology_key), one.weight));
    required.chain(preferred).collect()
}
