//! Filter: rejects a node that `spec.nodeSelector` or the required node affinity does not match.
//! Score: adds the weights of the preferred terms that match.

use super::node_selector::{any_term_matches, required_matches, term_matches};
use crate::cache::Snapshot;
use crate::framework::{
    Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange, normalize_to_max,
};
use crate::node_facts::NodeFacts;
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::{self, NodeSelectorTerm, PreferredSchedulingTerm};
use std::collections::BTreeSet;
use std::sync::Arc;

const REASON: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// With what is asked of nodes for every pod beside the pod's own wishes.
#[derive(Debug, Default)]
pub struct NodeAffinity {
    added: v1::NodeAffinity,
}

impl NodeAffinity {
    pub fn new(added: v1::NodeAffinity) -> Self {
        Self { added }
    }

    fn enforced(&self) -> Option<&[NodeSelectorTerm]> {
        let required = required(Some(&self.added))?;
        Some(required)
    }

    fn enforces_other(&self, node: &NodeFacts) -> bool {
        let enforced = self.enforced();
        enforced.is_some_and(|terms| !any_term_matches(terms, node))
    }

    fn fits(&self, pod: &PodInfo, node: &NodeFacts) -> bool {
        !self.enforces_other(node) && required_matches(pod, node)
    }

    fn preferred<'a>(
        &'a self,
        pod: &'a PodInfo,
    ) -> impl Iterator<Item = &'a PreferredSchedulingTerm> {
        let added = &self
            .added
            .preferred_during_scheduling_ignored_during_execution;
        added.iter().flatten().chain(preferred(pod))
    }
}

fn required(affinity: Option<&v1::NodeAffinity>) -> Option<&[NodeSelectorTerm]> {
    let required = &affinity?.required_during_scheduling_ignored_during_execution;
    Some(&required.as_ref()?.node_selector_terms)
}

fn of_pod(pod: &PodInfo) -> Option<&v1::NodeAffinity> {
    pod.affinity()?.node_affinity.as_ref()
}

/// The only nodes that terms allow by name, where each term names some.
fn only(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<Arc<str>>> {
    let mut nodes = BTreeSet::new();
    for term in terms {
        nodes.extend(only_by(term)?);
    }
    (!terms.is_empty()).then_some(nodes)
}

fn only_by(term: &NodeSelectorTerm) -> Option<BTreeSet<Arc<str>>> {
    let fields = term.match_fields.iter().flatten();
    let named = fields.filter(|one| one.key == "metadata.name" && one.operator == "In");
    let sets = named.map(|one| {
        let values = one.values.iter().flatten();
        values.map(|name| Arc::from(name.as_str())).collect()
    });
    sets.reduce(|one: BTreeSet<Arc<str>>, other| &one & &other)
}

fn preferred(pod: &PodInfo) -> &[PreferredSchedulingTerm] {
    pod.affinity()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|all| {
            all.preferred_during_scheduling_ignored_during_execution
                .as_deref()
        })
        .unwrap_or(&[])
}

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER_AND_SCORE
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, _slot: &mut Slot) -> PreFilter {
        let terms = required(of_pod(pod));
        if terms.is_none() && self.enforced().is_none() && pod.node_selector().next().is_none() {
            return PreFilter::Skip;
        }
        match only(terms.unwrap_or(&[])) {
            None => PreFilter::Filter,
            Some(nodes) if nodes.is_empty() => {
                PreFilter::Refuse(Verdict::Unresolvable(Reason::Text(REASON_CONFLICT)))
            }
            Some(nodes) => PreFilter::Only(nodes),
        }
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        if self.enforces_other(&node.facts) {
            Verdict::Unresolvable(Reason::Text(REASON_ENFORCED))
        } else if required_matches(pod, &node.facts) {
            Verdict::Fit
        } else {
            Verdict::Unresolvable(Reason::Text(REASON))
        }
    }

    fn pre_score(
        &self,
        pod: &PodInfo,
        _nodes: &[&NodeInfo],
        _world: &Snapshot,
        _slot: &mut Slot,
    ) -> bool {
        self.preferred(pod).next().is_some()
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        self.preferred(pod)
            .filter(|term| term_matches(&term.preference, &node.facts))
            .map(|term| i64::from(term.weight))
            .sum()
    }

    fn normalize(&self, _nodes: &[&NodeInfo], scores: &mut [i64], _slot: &Slot) {
        normalize_to_max(scores, false);
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself => true,
            WorldChange::NodeAdded(new) => self.fits(pod, new),
            WorldChange::NodeUpdated { old, new } => self.fits(pod, new) && !self.fits(pod, old),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
