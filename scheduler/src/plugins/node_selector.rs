//! Node selector terms against what the scheduler knows of a node.

use crate::node_facts::NodeFacts;
use crate::pod_info::PodInfo;
use coracle_client::node_selector;
use k8s_openapi::api::core::v1::NodeSelectorTerm;

/// Whether `spec.nodeSelector` and the required node affinity of a pod let it on a node.
pub fn required_matches(pod: &PodInfo, node: &NodeFacts) -> bool {
    let mut pairs = pod.node_selector();
    if !pairs.all(|(key, value)| node.label(key) == Some(value)) {
        return false;
    }
    let affinity = pod.affinity().and_then(|all| all.node_affinity.as_ref());
    let required = affinity.and_then(|all| {
        all.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    required.is_none_or(|required| any_term_matches(&required.node_selector_terms, node))
}

pub fn any_term_matches(terms: &[NodeSelectorTerm], node: &NodeFacts) -> bool {
    terms.iter().any(|term| term_matches(term, node))
}

pub fn term_matches(term: &NodeSelectorTerm, node: &NodeFacts) -> bool {
    node_selector::term_matches(term, |key| node.label(key), &node.name)
}

#[cfg(test)]
mod tests;
