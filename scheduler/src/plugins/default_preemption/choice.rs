//! The node with the least harm.

use super::Candidate;
use super::victims::{Victims, started};
use std::cmp::Reverse;

/// What makes every priority count more than none.
const PRIORITY_OFFSET: i64 = 1 << 31;

/// Smaller is better: fewest violated budgets, the lowest of the highest priorities, the smallest
/// sum of priorities, the fewest victims, then whose most important victims began last.
fn harm(victims: &Victims) -> impl Ord + use<> {
    let highest = victims.pods.iter().map(|pod| pod.priority).max();
    let sum: i64 = victims
        .pods
        .iter()
        .map(|pod| i64::from(pod.priority) + PRIORITY_OFFSET)
        .sum();
    let most_important = victims
        .pods
        .iter()
        .filter(|pod| Some(pod.priority) == highest);
    let since = most_important.map(|pod| started(pod)).min();
    (
        victims.violations,
        highest,
        sum,
        victims.pods.len(),
        Reverse(since),
    )
}

/// The first of the best.
pub fn best(candidates: Vec<Candidate<'_>>) -> Option<Candidate<'_>> {
    let candidates = candidates.into_iter();
    candidates.min_by_key(|candidate| harm(&candidate.victims))
}
