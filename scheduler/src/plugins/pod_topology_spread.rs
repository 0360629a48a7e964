//! Filter: rejects a node where the pod would make its domain's share of like pods exceed the
//! smallest one by more than `maxSkew`. Score: prefers nodes in domains with fewer like pods.
//!
//! A pod without constraints of its own has the default ones, over the pods of its services and of
//! the workload that controls it.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_facts::NodeFacts;
use crate::node_info::NodeInfo;
use crate::plugins::node_selector::required_matches;
use crate::pod_info::{PodInfo, SpreadConstraint};
use crate::selector;
use crate::views::Owners;
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use std::sync::Arc;

mod counts; // How many pods are where, for the filter.
mod domains; // Which nodes and pods count.
mod shares; // The same for the score.

use counts::Counts;
use shares::Shares;

const NAME: &str = "PodTopologySpread";
const REASON: &str = "node(s) didn't match pod topology spread constraints";
const REASON_NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Debug)]
pub struct PodTopologySpread {
    owners: Owners,
    defaults: Vec<SpreadConstraint>,
    /// Nodes need not have all keys of the system's defaults: zones are no must.
    is_system_defaulted: bool,
}

impl PodTopologySpread {
    /// With the system's default constraints.
    pub fn new(owners: Owners) -> Self {
        let soft = |topology_key: &str, max_skew| TopologySpreadConstraint {
            topology_key: topology_key.to_owned(),
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            max_skew,
            ..TopologySpreadConstraint::default()
        };
        Self {
            is_system_defaulted: true,
            ..Self::with_defaults(owners, &[soft(HOSTNAME, 3), soft(ZONE, 5)])
        }
    }

    pub fn with_defaults(owners: Owners, defaults: &[TopologySpreadConstraint]) -> Self {
        let defaults = defaults.iter().map(|one| SpreadConstraint::new(one, None));
        Self {
            owners,
            defaults: defaults.collect(),
            is_system_defaulted: false,
        }
    }

    /// The pod's own constraints of a sort, or the default ones.
    fn constraints(&self, pod: &PodInfo, is_hard: bool) -> Arc<[SpreadConstraint]> {
        let of_sort = |all: &[SpreadConstraint]| {
            let all = all.iter().filter(|one| one.is_hard == is_hard);
            all.cloned().collect::<Arc<[_]>>()
        };
        if !pod.spread.is_empty() {
            return of_sort(&pod.spread);
        }
        let defaults = of_sort(&self.defaults);
        if defaults.is_empty() {
            return defaults;
        }
        let selector = self.owners.selector(pod);
        if selector.is_empty() {
            return Arc::default();
        }
        let selector = Arc::new(selector);
        let defaults = defaults.iter();
        defaults
            .map(|one| one.with_selector(&selector, pod.labels()))
            .collect()
    }

    fn node_can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        let constraints = self.constraints(pod, true);
        let is_in = |node: &NodeFacts| {
            let mut keys = constraints.iter().map(|one| &one.topology_key);
            keys.all(|key| node.label(key).is_some())
        };
        // Where the pod may not go does not count, in most cases.
        let is_for = |node: &NodeFacts| required_matches(pod, node);
        match change {
            WorldChange::NodeAdded(node) | WorldChange::NodeRemoved(node) => is_in(node),
            WorldChange::NodeUpdated { old, new } => {
                let moved = |one: &SpreadConstraint| {
                    old.label(&one.topology_key) != new.label(&one.topology_key)
                };
                is_in(old) != is_in(new)
                    || is_in(new)
                        && (constraints.iter().any(moved)
                            || old.taints != new.taints
                            || is_for(old) != is_for(new))
            }
            _ => false,
        }
    }

    fn other_can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        let constraints = self.constraints(pod, true);
        let is_near = |other: &PodInfo| other.key.namespace == pod.key.namespace;
        let counts = |one: &SpreadConstraint, other: &PodInfo| {
            selector::matches(&one.selector, Some(other.labels()))
        };
        match change {
            WorldChange::PodPlaced(other) | WorldChange::PodGone(other) => {
                is_near(other) && constraints.iter().any(|one| counts(one, other))
            }
            WorldChange::PodUpdated { old, new } => {
                let differs = |one| counts(one, old) != counts(one, new);
                is_near(new) && constraints.iter().any(differs)
            }
            _ => false,
        }
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER_AND_SCORE
    }

    fn pre_filter(&self, pod: &PodInfo, world: &Snapshot, slot: &mut Slot) -> PreFilter {
        let constraints = self.constraints(pod, true);
        if constraints.is_empty() {
            return PreFilter::Skip;
        }
        slot.set(Counts::new(constraints, pod, &world.nodes));
        PreFilter::Filter
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let Some(counts) = slot.get::<Counts>() else {
            return Verdict::Fit;
        };
        for (constraint, domains) in counts.each() {
            let Some(value) = node.label(&constraint.topology_key) else {
                return Verdict::Unresolvable(Reason::Text(REASON_NO_LABEL));
            };
            let with_it = domains.count(value) + i64::from(constraint.matches_self);
            if with_it - domains.least(constraint.min_domains) > constraint.max_skew {
                return Verdict::Unschedulable(Reason::Text(REASON));
            }
        }
        Verdict::Fit
    }

    fn add_pod(&self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        if let Some(counts) = slot.get_mut::<Counts>() {
            counts.add(pod, other, node, 1);
        }
    }

    fn remove_pod(&self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, slot: &mut Slot) {
        if let Some(counts) = slot.get_mut::<Counts>() {
            counts.add(pod, other, node, -1);
        }
    }

    fn pre_score(
        &self,
        pod: &PodInfo,
        nodes: &[&NodeInfo],
        world: &Snapshot,
        slot: &mut Slot,
    ) -> bool {
        let constraints = self.constraints(pod, false);
        if constraints.is_empty() {
            return false;
        }
        let needs_all = !pod.spread.is_empty() || !self.is_system_defaulted;
        slot.set(Shares::new(constraints, needs_all, pod, nodes, world));
        true
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, slot: &Slot) -> i64 {
        let shares = slot.get::<Shares>();
        shares.map_or(0, |shares| shares.score(pod, node))
    }

    fn normalize(&self, nodes: &[&NodeInfo], scores: &mut [i64], slot: &Slot) {
        if let Some(shares) = slot.get::<Shares>() {
            shares.normalize(nodes, scores);
        }
    }

    fn can_help(&self, change: &WorldChange, pod: &PodInfo) -> bool {
        match change {
            WorldChange::Itself => true,
            WorldChange::NodeAdded(_)
            | WorldChange::NodeUpdated { .. }
            | WorldChange::NodeRemoved(_) => self.node_can_help(change, pod),
            _ => self.other_can_help(change, pod),
        }
    }
}

#[cfg(test)]
mod tests;
