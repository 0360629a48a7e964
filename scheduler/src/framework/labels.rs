//! How updates are called in metrics, by upstream's names.

use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// In the order in which upstream looks.
pub fn node_updated(old: &Node, new: &Node) -> &'static str {
    let is_same = |part: fn(&Node) -> Option<Part<'_>>| part(old) == part(new);
    if !is_same(|node| node.spec.as_ref()?.unschedulable.map(Part::Flag)) {
        "NodeUpdateNodeTaint"
    } else if !is_same(|node| {
        node.status
            .as_ref()?
            .allocatable
            .as_ref()
            .map(Part::Amounts)
    }) {
        "NodeUpdateNodeAllocatable"
    } else if !is_same(|node| node.metadata.labels.as_ref().map(Part::Texts)) {
        "NodeUpdateNodeLabel"
    } else if !is_same(|node| node.spec.as_ref()?.taints.as_ref().map(Part::Taints)) {
        "NodeUpdateNodeTaint"
    } else if !is_same(|node| node.metadata.annotations.as_ref().map(Part::Texts)) {
        "NodeUpdateNodeAnnotation"
    } else {
        "NodeUpdate"
    }
}

/// A part of a node that is looked at by itself.
#[derive(PartialEq)]
enum Part<'a> {
    Flag(bool),
    Amounts(&'a BTreeMap<String, Quantity>),
    Texts(&'a BTreeMap<String, String>),
    Taints(&'a Vec<Taint>),
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
