//! Score: prefers nodes whose cpu and memory would be used to a like degree with the pod on them.
//!
//! The measure is the standard deviation of the used fractions. What counts is how the pod
//! changes it: a pod that leaves the balance as it is scores 75, a better one up to 100, a worse
//! one down to 50.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, SCORE_MAX, Slot, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

#[derive(Debug)]
pub struct BalancedAllocation;

/// Between half of `SCORE_MAX` (one fully used, one not at all) and `SCORE_MAX`.
fn balance(used: [i64; 2], has: [i64; 2]) -> i64 {
    let mut fractions = [0.0_f64; 2];
    let mut count = 0;
    for (used, has) in used.into_iter().zip(has) {
        if has > 0 {
            fractions[count] = (used as f64 / has as f64).min(1.0);
            count += 1;
        }
    }
    let deviation = if count == 2 {
        (fractions[0] - fractions[1]).abs() / 2.0
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
        _slot: &mut Slot,
    ) -> bool {
        pod.requests.milli_cpu > 0 || pod.requests.memory > 0
    }

    fn score(&self, pod: &PodInfo, node: &NodeInfo, _world: &Snapshot, _slot: &Slot) -> i64 {
        let has = [node.allocatable.milli_cpu, node.allocatable.memory];
        let before = [node.requested.milli_cpu, node.requested.memory];
        let after = [
            before[0] + pod.requests.milli_cpu,
            before[1] + pod.requests.memory,
        ];
        let half = SCORE_MAX / 2;
        half + (half + balance(after, has) - balance(before, has)) / 2
    }

    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_best_when_both_are_used_alike() {
        assert_eq!(balance([50, 50], [100, 100]), 100);
        assert_eq!(balance([100, 0], [100, 100]), 50);
        assert_eq!(balance([20, 60], [100, 100]), 80);
        assert_eq!(
            balance([20, 60], [100, 0]),
            100,
            "what a node lacks does not count"
        );
    }
}
