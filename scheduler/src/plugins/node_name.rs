//! Filter: rejects all nodes but the one that `spec.nodeName` names.

use crate::framework::{Plugin, Points, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

const REASON: &str = "node(s) didn't match the requested node name";

#[derive(Debug)]
pub struct NodeName;

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        let wanted = pod.node_name();
        if wanted.is_empty() || wanted == node.name.as_ref() {
            Verdict::Fit
        } else {
            Verdict::Unresolvable(Reason::Text(REASON))
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::NodeAdded(node) => *node.name == *pod.node_name(),
            WorldChange::Itself => true,
            _ => false,
        }
    }
}
