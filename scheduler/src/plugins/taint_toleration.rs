//! Filter: rejects a node with a taint of effect NoSchedule or NoExecute that the pod does not
//! tolerate. Score: prefers nodes with fewer untolerated PreferNoSchedule taints.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, Reason, Slot, Verdict, WorldChange, normalize_to_max};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::Taint;

const REASON: &str = "node(s) had untolerated taint(s)";

#[derive(Debug)]
pub struct TaintToleration;

fn is_tolerated(pod: &PodInfo, taint: &Taint) -> bool {
    pod.tolerations()
        .iter()
        .any(|toleration| tolerates(toleration, taint))
}

fn first_untolerated<'a>(pod: &PodInfo, taints: &'a [Taint]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| !is_tolerated(pod, taint))
}

pub fn tolerates_hard_taints(pod: &PodInfo, taints: &[Taint]) -> bool {
    first_untolerated(pod, taints).is_none()
}

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn points(&self) -> Points {
        Points::FILTER_AND_SCORE
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        match first_untolerated(pod, node.taints()) {
            Some(_) => Verdict::Unresolvable(Reason::Text(REASON)),
            None => Verdict::Fit,
        }
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        let avoided = |taint: &&Taint| taint.effect == "PreferNoSchedule";
        let untolerated = node
            .taints()
            .iter()
            .filter(avoided)
            .filter(|taint| {
                !pod.tolerations().iter().any(|toleration| {
                    let effect = toleration.effect.as_deref().unwrap_or("");
                    matches!(effect, "" | "PreferNoSchedule") && tolerates(toleration, taint)
                })
            })
            .count();
        i64::try_from(untolerated).unwrap_or(i64::MAX)
    }

    fn normalize(&self, _nodes: &[&NodeInfo], scores: &mut [i64], _slot: &Slot) {
        normalize_to_max(scores, true);
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself => true,
            _ => {
                let node = change.node();
                change.changes(|old, new| old.taints != new.taints)
                    && node.is_some_and(|node| tolerates_hard_taints(pod, &node.taints))
            }
        }
    }
}
