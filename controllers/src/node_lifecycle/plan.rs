//! What is to be written to one node. Pure.
//!
//! Conditions: a node that was silent for too long has Unknown ones. Taints: those of effect
//! NoSchedule mirror the conditions; those of NoExecute are exchanged or removed here at once and
//! given by `zones`, which limits how many nodes lose their pods.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::node::{self, NO_EXECUTE, NOT_READY, Readiness, UNREACHABLE};
use crate::nodes;

const NO_SCHEDULE: &str = "NoSchedule";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Condition, its status, and the taint that goes with it.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
/// What only the node can know. The network's state is not among them: others watch that.
const OWN_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// Stable labels and the beta ones that repeat them.
const REPEATED_LABELS: [(&str, &str); 2] = [
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];

/// The node with Unknown conditions, since nobody hears from it; `None` when it has them.
pub(super) fn lost(node: &Node, now: &Time) -> Option<Node> {
    let mut conditions = nodes::conditions(node).to_vec();
    for kind in OWN_CONDITIONS {
        match conditions.iter_mut().find(|one| one.type_ == kind) {
            None => conditions.push(NodeCondition {
                type_: kind.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some("NodeStatusNeverUpdated".to_owned()),
                message: Some("Kubelet never posted node status.".to_owned()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(now.clone()),
            }),
            Some(known) if known.status != "Unknown" => {
                "Unknown".clone_into(&mut known.status);
                known.reason = Some("NodeStatusUnknown".to_owned());
                known.message = Some("Kubelet stopped posting node status.".to_owned());
                known.last_transition_time = Some(now.clone());
            }
            Some(_) => {}
        }
    }
    if conditions == nodes::conditions(node) {
        return None;
    }
    let mut node = node.clone();
    node.status.get_or_insert_default().conditions = Some(conditions);
    Some(node)
}

/// The node with the taints and labels it should have; `None` when it has them.
pub(super) fn marked(node: &Node, now: &Time) -> Option<Node> {
    let mut taints = mirror_conditions(node, now);
    match node::readiness(node) {
        Readiness::Ready => {
            remove(&mut taints, NOT_READY, NO_EXECUTE);
            remove(&mut taints, UNREACHABLE, NO_EXECUTE);
        }
        Readiness::NotReady if has(&taints, UNREACHABLE, NO_EXECUTE) => {
            evict(&mut taints, NOT_READY, now);
        }
        Readiness::Unknown if has(&taints, NOT_READY, NO_EXECUTE) => {
            evict(&mut taints, UNREACHABLE, now);
        }
        _ => {}
    }
    let labels = missing_labels(node);
    if labels.is_empty() && taints == node::taints(node) {
        return None;
    }
    let mut node = with_taints(node, taints);
    if !labels.is_empty() {
        let known = node.metadata.labels.get_or_insert_default();
        known.extend(labels);
    }
    Some(node)
}

/// The node with the taint that moves its pods away; `None` when it has it or is well.
pub(super) fn evicting(node: &Node, now: &Time) -> Option<Node> {
    let key = match node::readiness(node) {
        Readiness::NotReady => NOT_READY,
        Readiness::Unknown => UNREACHABLE,
        Readiness::Ready | Readiness::Unreported => return None,
    };
    let mut taints = node::taints(node).to_vec();
    evict(&mut taints, key, now);
    (taints != node::taints(node)).then(|| with_taints(node, taints))
}

/// The node without the taints that move its pods away; `None` when it has none.
pub(super) fn spared(node: &Node) -> Option<Node> {
    let mut taints = node::taints(node).to_vec();
    remove(&mut taints, NOT_READY, NO_EXECUTE);
    remove(&mut taints, UNREACHABLE, NO_EXECUTE);
    (taints != node::taints(node)).then(|| with_taints(node, taints))
}

fn mirror_conditions(node: &Node, now: &Time) -> Vec<Taint> {
    let mut wanted: Vec<&str> = Vec::new();
    for condition in nodes::conditions(node) {
        let rule = BY_CONDITION
            .iter()
            .find(|(kind, status, _)| *kind == condition.type_ && *status == condition.status);
        wanted.extend(rule.map(|(.., key)| *key));
    }
    let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable);
    if unschedulable == Some(true) {
        wanted.push(UNSCHEDULABLE);
    }
    let is_ours = |key: &str| key == UNSCHEDULABLE || BY_CONDITION.iter().any(|it| it.2 == key);
    let mut taints = node::taints(node).to_vec();
    taints.retain(|taint| {
        taint.effect != NO_SCHEDULE || !is_ours(&taint.key) || wanted.contains(&&*taint.key)
    });
    for key in wanted {
        add(&mut taints, key, NO_SCHEDULE, now);
    }
    taints
}

/// The two exclude each other, as the two states of the node do.
fn evict(taints: &mut Vec<Taint>, key: &str, now: &Time) {
    let opposite = if key == NOT_READY {
        UNREACHABLE
    } else {
        NOT_READY
    };
    remove(taints, opposite, NO_EXECUTE);
    add(taints, key, NO_EXECUTE, now);
}

fn has(taints: &[Taint], key: &str, effect: &str) -> bool {
    taints
        .iter()
        .any(|taint| taint.key == key && taint.effect == effect)
}

fn add(taints: &mut Vec<Taint>, key: &str, effect: &str, now: &Time) {
    if !has(taints, key, effect) {
        taints.push(Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            time_added: Some(now.clone()),
            value: None,
        });
    }
}

fn remove(taints: &mut Vec<Taint>, key: &str, effect: &str) {
    taints.retain(|taint| !(taint.key == key && taint.effect == effect));
}

fn with_taints(node: &Node, taints: Vec<Taint>) -> Node {
    let mut node = node.clone();
    let spec = node.spec.get_or_insert_default();
    spec.taints = (!taints.is_empty()).then_some(taints);
    node
}

fn missing_labels(node: &Node) -> Vec<(String, String)> {
    let Some(labels) = &node.metadata.labels else {
        return Vec::new();
    };
    REPEATED_LABELS
        .iter()
        .filter_map(|(stable, beta)| {
            let value = labels.get(*stable)?;
            let differs = labels.get(*beta) != Some(value);
            differs.then(|| ((*beta).to_owned(), value.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
