//! Filter: rejects a node with too little left of what the pod requests.
//! Score: prefers nodes with more cpu and memory left (least allocated, both weighted alike).

use crate::cache::Snapshot;
use crate::framework::{Lacking, Plugin, Points, Reason, SCORE_MAX, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::resources::Resources;

#[derive(Debug)]
pub struct NodeResourcesFit;

/// One of the amounts that every node has.
type Amount = fn(&Resources) -> i64;

fn lacking(asked: &Resources, free: impl Fn(Amount) -> i64) -> Lacking {
    let mut lacking = Lacking::default();
    let amounts: [(u32, Amount); 3] = [
        (Lacking::CPU, |all| all.milli_cpu),
        (Lacking::MEMORY, |all| all.memory),
        (Lacking::EPHEMERAL_STORAGE, |all| all.ephemeral_storage),
    ];
    for (which, amount) in amounts {
        if amount(asked) > 0 && amount(asked) > free(amount) {
            lacking.add(which);
        }
    }
    lacking
}

/// Whether a pod on a node asks for less than it did.
fn gave_up_some(old: &Resources, new: &Resources) -> bool {
    new.milli_cpu < old.milli_cpu
        || new.memory < old.memory
        || new.ephemeral_storage < old.ephemeral_storage
        || old
            .scalars
            .iter()
            .any(|(name, had)| new.scalar(name) < *had)
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn points(&self) -> Points {
        Points::FILTER_AND_SCORE
    }

    fn filter(&self, pod: &PodInfo, node: &NodeInfo, _slot: &Slot) -> Verdict {
        let (has, used) = (&node.allocatable, &node.requested);
        let mut lacking = lacking(&pod.requests, |amount| amount(has) - amount(used));
        if i64::try_from(node.pods.len()).unwrap_or(i64::MAX) >= has.pods {
            lacking.add(Lacking::PODS);
        }
        for (which, (name, asked)) in (Lacking::SCALARS..).zip(&pod.requests.scalars) {
            if *asked > 0 && *asked > has.scalar(name) - used.scalar(name) {
                lacking.add(which);
            }
        }
        if lacking.is_empty() {
            Verdict::Fit
        } else {
            Verdict::Unschedulable(Reason::Lacking(lacking))
        }
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        let left = |has: i64, used: i64, asked: i64| {
            let wanted = used + asked;
            (has > 0).then(|| {
                if wanted > has {
                    0
                } else {
                    (has - wanted) * SCORE_MAX / has
                }
            })
        };
        let (has, used, asked) = (&node.allocatable, &node.scored, &pod.scored);
        let scores = [
            left(has.milli_cpu, used.milli_cpu, asked.milli_cpu),
            left(has.memory, used.memory, asked.memory),
        ];
        let counted = scores.iter().flatten().count();
        let sum: i64 = scores.iter().flatten().sum();
        if counted == 0 {
            0
        } else {
            sum / i64::try_from(counted).unwrap_or(1)
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself | WorldChange::PodGone(_) => true,
            WorldChange::PodPlaced(_) => false,
            WorldChange::PodUpdated { old, new } => gave_up_some(&old.requests, &new.requests),
            _ => {
                let allocatable = |node: &k8s_openapi::api::core::v1::Node| {
                    node.status
                        .as_ref()
                        .and_then(|status| status.allocatable.clone())
                };
                let Some(node) = change.node().filter(|_| change.changes(allocatable)) else {
                    return false;
                };
                // A node that is too small even when empty helps nobody.
                let has = allocatable(node).as_ref().map(Resources::from_quantities);
                has.is_some_and(|has| lacking(&pod.requests, |amount| amount(&has)).is_empty())
            }
        }
    }
}

#[cfg(test)]
mod tests;
