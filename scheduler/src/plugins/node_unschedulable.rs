//! Filter: rejects a cordoned node, unless the pod tolerates the taint that stands for it.

use crate::framework::{Plugin, Points, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use coracle_client::toleration::tolerates;
use k8s_openapi::api::core::v1::Taint;

const REASON: &str = "node(s) were unschedulable";

#[derive(Debug)]
pub struct NodeUnschedulable;

fn tolerates_cordon(pod: &PodInfo) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    pod.tolerations()
        .iter()
        .any(|toleration| tolerates(toleration, &taint))
}

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        if node.facts.is_unschedulable && !tolerates_cordon(pod) {
            Verdict::Unresolvable(Reason::Text(REASON))
        } else {
            Verdict::Fit
        }
    }

    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself => true,
            WorldChange::NodeAdded(node) => !node.is_unschedulable,
            WorldChange::NodeUpdated { old, new } => old.is_unschedulable && !new.is_unschedulable,
            _ => false,
        }
    }
}
