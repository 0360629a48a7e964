//! How many like pods each domain has, for the score.

use super::HOSTNAME;
use super::domains::{count, count_once, has_all_keys, is_counted};
use crate::cache::Snapshot;
use crate::framework::SCORE_MAX;
use crate::node_info::NodeInfo;
use crate::pod_info::{Memo, PodInfo, SpreadConstraint};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Share {
    /// Of the domains of nodes that come into question. Not for nodes as domains: those are
    /// counted when they are scored.
    by_value: HashMap<Arc<str>, i64>,
    /// Keeps topologies of few domains from drowning in those of many.
    weight: f64,
}

#[derive(Clone, Debug)]
pub struct Shares {
    constraints: Arc<[SpreadConstraint]>,
    /// One for each constraint.
    shares: Vec<Share>,
    /// Nodes that lack a topology key are not scored.
    needs_all: bool,
}

impl Shares {
    pub fn new(
        constraints: Arc<[SpreadConstraint]>,
        needs_all: bool,
        pod: &PodInfo,
        nodes: &[&NodeInfo],
        world: &Snapshot,
    ) -> Self {
        let counted = |node: &NodeInfo| !needs_all || has_all_keys(node, &constraints);
        let scored = || nodes.iter().filter(|node| counted(node));
        let share = |constraint: &SpreadConstraint| {
            let mut by_value = HashMap::new();
            let size = if &*constraint.topology_key == HOSTNAME {
                scored().count()
            } else {
                // A node without the label is in the domain without a name.
                let values = scored().map(|node| node.label(&constraint.topology_key));
                by_value.extend(values.map(|value| (Arc::from(value.unwrap_or("")), 0)));
                by_value.len()
            };
            Share {
                by_value,
                weight: (size as f64 + 2.0).ln(),
            }
        };
        let mut shares: Vec<Share> = constraints.iter().map(share).collect();
        let mut like: Vec<_> = constraints.iter().map(|_| Memo::default()).collect();
        for node in world.nodes.iter().filter(|node| counted(node)) {
            for ((constraint, share), like) in constraints.iter().zip(&mut shares).zip(&mut like) {
                let value = node.label(&constraint.topology_key).unwrap_or("");
                if let Some(known) = share.by_value.get_mut(value)
                    && is_counted(constraint, pod, node)
                {
                    *known += count(constraint, pod, node, like);
                }
            }
        }
        Self {
            constraints,
            shares,
            needs_all,
        }
    }

    fn is_left_out(&self, node: &NodeInfo) -> bool {
        self.needs_all && !has_all_keys(node, &self.constraints)
    }

    pub fn score(&self, pod: &PodInfo, node: &NodeInfo) -> i64 {
        if self.is_left_out(node) {
            return 0;
        }
        let mut score = 0.0;
        for (constraint, share) in self.constraints.iter().zip(&self.shares) {
            let Some(value) = node.label(&constraint.topology_key) else {
                continue;
            };
            let count = if &*constraint.topology_key == HOSTNAME {
                count_once(constraint, pod, node)
            } else {
                share.by_value.get(value).copied().unwrap_or(0)
            };
            // The more skew is allowed, the less differences weigh.
            score += count as f64 * share.weight + (constraint.max_skew - 1) as f64;
        }
        score.round() as i64
    }

    /// The fewer pods, the better.
    pub fn normalize(&self, nodes: &[&NodeInfo], scores: &mut [i64]) {
        let scored = nodes.iter().zip(scores.iter());
        let scored = scored.filter(|(node, _)| !self.is_left_out(node));
        let (least, most) = scored.fold((i64::MAX, 0), |(least, most), (_, score)| {
            (least.min(*score), most.max(*score))
        });
        for (node, score) in nodes.iter().zip(scores) {
            *score = if self.is_left_out(node) {
                0
            } else if most == 0 {
                SCORE_MAX
            } else {
                SCORE_MAX * (most + least - *score) / most
            };
        }
    }
}
