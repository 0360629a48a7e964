//! Whose disruption budget has nothing left, when pods go in the order of their importance.

use crate::cache::{Budget, Budgets};
use crate::pod_info::PodInfo;
use crate::selector;
use std::sync::Arc;

type Pods = Vec<Arc<PodInfo>>;

/// The pods whose end violates a budget, and the others, each in the order in which they came.
pub fn split(pods: Pods, budgets: &Budgets) -> (Pods, Pods) {
    let mut left: Vec<(&Budget, i32)> = budgets.iter().map(|one| (one, one.allowed)).collect();
    pods.into_iter().partition(|pod| spend(pod, &mut left))
}

/// Counts the pod against every budget of it; true when one has nothing left.
fn spend(pod: &PodInfo, left: &mut [(&Budget, i32)]) -> bool {
    if pod.labels().is_empty() {
        return false;
    }
    let mut is_violated = false;
    for (budget, left) in left {
        let is_counted = budget.namespace == pod.key.namespace
            && selector::matches(&budget.selector, Some(pod.labels()))
            // One of these was counted when its eviction was granted.
            && !budget.disrupted.contains(&pod.key.name);
        if is_counted {
            *left = left.saturating_sub(1);
            is_violated |= *left < 0;
        }
    }
    is_violated
}
