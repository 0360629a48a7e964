//! Node selector terms against what the scheduler knows of a node.

use crate::node_info::NodeInfo;
use coracle_client::node_selector;
use k8s_openapi::api::core::v1::NodeSelectorTerm;

pub fn any_term_matches(terms: &[NodeSelectorTerm], node: &NodeInfo) -> bool {
    terms.iter().any(|term| term_matches(term, node))
}

pub fn term_matches(term: &NodeSelectorTerm, node: &NodeInfo) -> bool {
    node_selector::term_matches(term, |key| node.label(key), &node.name)
}

#[cfg(test)]
mod tests;
