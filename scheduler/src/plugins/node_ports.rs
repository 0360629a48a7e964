//! Filter: rejects a node where a pod already holds one of the host ports that the pod wants.

use crate::framework::{Plugin, Points, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

#[derive(Debug)]
pub struct NodePorts;

fn conflict(pod: &PodInfo, taken: &[crate::pod_info::HostPort]) -> bool {
    pod.host_ports
        .iter()
        .any(|wanted| taken.iter().any(|port| port.conflicts(wanted)))
}

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        if conflict(pod, &node.host_ports) {
            Verdict::Unschedulable(Reason::Text(REASON))
        } else {
            Verdict::Fit
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::NodeAdded(_) | WorldChange::Itself => true,
            WorldChange::PodGone(gone) => conflict(pod, &gone.host_ports),
            _ => false,
        }
    }
}
