//! Filter: rejects a node to which a CSI driver would have to attach more volumes than its CSINode
//! says that it can.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use crate::volumes::{Volumes, limits};
use coracle_client::key_of;
use k8s_openapi::api::storage::v1::CSINode;
use parking_lot::Mutex;
use std::sync::Arc;

mod driven; // Which driver attaches which volumes of a pod.
mod load; // What is attached to each node.

use load::Loads;

const NAME: &str = "NodeVolumeLimits";
const REASON: &str = "node(s) exceed max volume count";

#[derive(Debug)]
pub struct NodeVolumeLimits {
    volumes: Arc<Mutex<Volumes>>,
}

impl NodeVolumeLimits {
    pub fn new(volumes: Arc<Mutex<Volumes>>) -> Self {
        Self { volumes }
    }

    fn update(&self, other: &PodInfo, node: &NodeInfo, slot: &mut Slot, is_there: bool) {
        if let Some(loads) = slot.get_mut::<Loads>() {
            let driven = driven::volumes(other, &self.volumes.lock());
            loads.update(&node.name, driven, is_there);
        }
    }
}

/// Whether a driver takes more than it did.
fn takes_more(old: &CSINode, new: &CSINode) -> bool {
    let before = |driver: &str| limits(old).find(|(known, _)| *known == driver);
    limits(new).any(|(driver, count)| count > before(driver).map_or(0, |(_, count)| count))
}

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER
    }

    fn pre_filter(&self, pod: &PodInfo, world: &Snapshot, slot: &mut Slot) -> PreFilter {
        let volumes = self.volumes.lock();
        let mut driven = driven::volumes(pod, &volumes);
        driven.retain(|one| volumes.on_nodes.is_limited(&one.driver));
        if driven.is_empty() {
            return PreFilter::Skip;
        }
        slot.set(Loads::new(driven, &world.nodes, &volumes));
        PreFilter::Filter
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        match slot.get::<Loads>() {
            Some(loads) if loads.is_too_much(&node.name) => {
                Verdict::Unschedulable(Reason::Text(REASON))
            }
            _ => Verdict::Fit,
        }
    }

    fn add_pod(&self, _pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        self.update(other, node, slot, true);
    }

    fn remove_pod(&self, _pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        self.update(other, node, slot, false);
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            // A node that says nothing of its drivers has no limits.
            WorldChange::Itself | WorldChange::NodeAdded(_) => true,
            WorldChange::PodGone(other) => !other.claims.is_empty() || !other.driven.is_empty(),
            WorldChange::Claim(claim) => {
                let key = key_of(claim.as_ref());
                key.namespace == pod.key.namespace
                    && pod.claims.iter().any(|own| own.name == key.name)
            }
            WorldChange::CsiNode { old, new } => {
                old.as_ref().is_none_or(|old| takes_more(old, new))
            }
            WorldChange::Detached(attachment) => {
                let attacher = &*attachment.spec.attacher;
                !pod.claims.is_empty() || pod.driven.iter().any(|one| &*one.driver == attacher)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
