//! Score: prefers nodes whose resources (cpu and memory) would be used to a like degree with the pod on them.
//!
//! The measure is the standard deviation of the used fractions. What counts is how the pod
//! changes it: a pod that leaves the balance as it is scores 75, a better one up to 100, a worse
//! one down to 50.

use super::dynamic_resources::{Offer, Offers};
use super::node_resources::{Use, Weighted, asks_for_any, default_resources, offer_for, uses};
use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, SCORE_MAX, Slot, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

#[derive(Debug)]
pub struct BalancedAllocation {
    resources: Vec<Weighted>,
    offers: Offers,
}

impl Default for BalancedAllocation {
    fn default() -> Self {
        Self::new(default_resources(), Offers::default())
    }
}

impl BalancedAllocation {
    pub fn new(resources: Vec<Weighted>, offers: Offers) -> Self {
        Self { resources, offers }
    }
}

/// `SCORE_MAX` when all are used alike; half of it when one of two is used up and the other not.
fn balance(uses: impl Iterator<Item = (i64, i64)> + Clone) -> i64 {
    let fractions = uses.map(|(used, has)| (used as f64 / has as f64).min(1.0));
    let count = fractions.clone().count() as f64;
    let mean = fractions.clone().sum::<f64>() / count;
    let deviation = if count == 2.0 {
        // The same as below, without what squares and roots lose.
        let both = fractions.reduce(|one, other| (one - other).abs() / 2.0);
        both.unwrap_or(0.0)
    } else if count > 2.0 {
        let squares = fractions.map(|one| (one - mean) * (one - mean));
        (squares.sum::<f64>() / count).sqrt()
    } else {
        0.0
    };
    ((1.0 - deviation) * SCORE_MAX as f64) as i64
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn points(&self) -> Points {
        Points::SCORE
    }

    /// A pod that asks for nothing changes no balance.
    fn pre_score(
        &self,
        pod: &PodInfo,
        _nodes: &[&NodeInfo],
        _world: &Snapshot,
        slot: &mut Slot,
    ) -> bool {
        if let Some(offer) = offer_for(&self.resources, pod, &self.offers) {
            slot.set(offer);
        }
        asks_for_any(&self.resources, pod)
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, slot: &Slot) -> i64 {
        let offer = slot.get::<Offer>();
        let uses = || uses(&self.resources, pod, node, false, offer);
        let before = |one: Use| (one.before, one.has);
        let after = |one: Use| (one.after, one.has);
        let half = SCORE_MAX / 2;
        half + (half + balance(uses().map(after)) - balance(uses().map(before))) / 2
    }

    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uses: &[(i64, i64)]) -> i64 {
        balance(uses.iter().copied())
    }

    #[test]
    fn balance_is_best_when_all_are_used_alike() {
        assert_eq!(of(&[(50, 100), (50, 100)]), 100);
        assert_eq!(of(&[(100, 100), (0, 100)]), 50);
        assert_eq!(of(&[(20, 100), (60, 100)]), 80);
        assert_eq!(of(&[(20, 100)]), 100, "what a node lacks does not count");
        assert_eq!(of(&[(0, 100), (50, 100), (100, 100)]), 59);
        assert_eq!(of(&[(200, 100), (0, 100)]), 50, "more than all is all");
    }
}
