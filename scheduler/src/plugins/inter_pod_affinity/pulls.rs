//! Which domains draw the pod, and which repel it: weights of preferred terms, summed.

use super::{Args, terms};
use crate::node_info::NodeInfo;
use crate::pod_info::{AffinityTerm, PodInfo, WeightedTerm};
use crate::selector::Labels;
use crate::views::Namespaces;
use std::collections::HashMap;
use std::sync::Arc;

/// Weights by topology key, then by value.
#[derive(Clone, Debug, Default)]
pub struct Pulls(HashMap<Arc<str>, HashMap<Arc<str>, i64>>);

impl Pulls {
    /// `None` where nothing draws and nothing repels.
    pub fn new(
        pod: &PodInfo,
        namespace_labels: Option<&Labels>,
        args: Args,
        namespaces: &Namespaces,
        nodes: &[NodeInfo],
    ) -> Option<Self> {
        let own = pod.terms.iter().flat_map(|own| own.preferred.iter());
        let own = own.map(|one| WeightedTerm {
            term: terms::resolve(&one.term, namespaces),
            weight: one.weight,
        });
        let own: Vec<WeightedTerm> = own.collect();
        let mut pulls = Self::default();
        for node in nodes {
            // Pods without terms say nothing of a pod without.
            let others = if own.is_empty() {
                &node.with_affinity
            } else {
                &node.pods
            };
            for other in others {
                for one in own.iter().filter(|one| one.term.matches(other, None)) {
                    pulls.add(node, &one.term, one.weight);
                }
                pulls.add_theirs(pod, other, node, namespace_labels, args);
            }
        }
        (!pulls.0.is_empty()).then_some(pulls)
    }

    fn add_theirs(
        &mut self,
        pod: &PodInfo,
        other: &PodInfo,
        node: &NodeInfo,
        namespace_labels: Option<&Labels>,
        args: Args,
    ) {
        let Some(theirs) = &other.terms else {
            return;
        };
        let is_met = |term: &AffinityTerm| term.matches(pod, namespace_labels);
        let weight = args.hard_pod_affinity_weight;
        if weight > 0 {
            for term in theirs.affinity.iter().filter(|term| is_met(term)) {
                self.add(node, term, weight);
            }
        }
        for one in theirs.preferred.iter().filter(|one| is_met(&one.term)) {
            self.add(node, &one.term, one.weight);
        }
    }

    fn add(&mut self, node: &NodeInfo, term: &AffinityTerm, weight: i64) {
        let Some(value) = node.label(&term.topology_key) else {
            return;
        };
        let by_value = self.0.entry(Arc::clone(&term.topology_key)).or_default();
        match by_value.get_mut(value) {
            Some(known) => *known += weight,
            None => drop(by_value.insert(value.into(), weight)),
        }
    }

    pub fn on(&self, node: &NodeInfo) -> i64 {
        let pulls = self.0.iter();
        let pulls = pulls.filter_map(|(key, by_value)| by_value.get(node.label(key)?));
        pulls.sum()
    }
}
