//! Filter: rejects a node that `spec.nodeSelector` or the required node affinity does not match.
//! Score: adds the weights of the preferred terms that match.

use super::node_selector::{required_matches, term_matches};
use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, Reason, Slot, Verdict, WorldChange, normalize_to_max};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::PreferredSchedulingTerm;
use std::sync::Arc;

const REASON: &str = "node(s) didn't match Pod's node affinity/selector";

#[derive(Debug)]
pub struct NodeAffinity;

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
        Points::FILTER_AND_SCORE
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        if required_matches(pod, node) {
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
        !preferred(pod).is_empty()
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        preferred(pod)
            .iter()
            .filter(|term| term_matches(&term.preference, node))
            .map(|term| i64::from(term.weight))
            .sum()
    }

    fn normalize(&self, _nodes: &[&NodeInfo], scores: &mut [i64], _slot: &Slot) {
        normalize_to_max(scores, false);
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        if matches!(change, WorldChange::Itself) {
            return true;
        }
        let Some(node) = change.node() else {
            return false;
        };
        let mut info = NodeInfo::new(node.metadata.name.as_deref().unwrap_or(""));
        info.set_node(Arc::clone(node));
        change.changes(|node| node.metadata.labels.clone()) && required_matches(pod, &info)
    }
}
