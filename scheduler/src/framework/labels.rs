//! How updates are called in metrics, by upstream's names.

use crate::node_facts::NodeFacts;
use crate::pod_info::PodInfo;

/// In the order in which upstream looks.
pub fn node_updated(old: &NodeFacts, new: &NodeFacts) -> &'static str {
    if old.is_unschedulable != new.is_unschedulable {
        "NodeUpdateNodeTaint"
    } else if old.allocatable != new.allocatable {
        "NodeUpdateNodeAllocatable"
    } else if old.labels != new.labels {
        "NodeUpdateNodeLabel"
    } else if old.taints != new.taints {
        "NodeUpdateNodeTaint"
    } else if old.has_local_path != new.has_local_path {
        "NodeUpdateNodeAnnotation"
    } else {
        "NodeUpdate"
    }
}

/// The label of an update of a pod that waits.
pub fn pod_updated(old: &PodInfo, new: &PodInfo) -> &'static str {
    let parts = |pod: &PodInfo| (pod.gates().len(), pod.tolerations().len());
    let (old_parts, new_parts) = (parts(old), parts(new));
    if old.labels() != new.labels() {
        "UnschedulablePodUpdatePodLabel"
    } else if old_parts.0 > 0 && new_parts.0 == 0 {
        "UnschedulablePodUpdatePodSchedulingGatesEliminated"
    } else if old_parts.1 != new_parts.1 {
        "UnschedulablePodUpdatePodToleration"
    } else {
        "UnschedulablePodUpdate"
    }
}
