//! Which pods make place for a critical one that does not fit. Pure; the choice is upstream's.
//!
//! As few and as lowly as will do: best-effort pods before burstable before guaranteed ones, and
//! of each class those whose requests come closest to what is missing.

use super::asked;
use super::fit::{Short, count};
use super::state::spec;
use coracle_api::amounts::Amounts;
use k8s_openapi::api::core::v1::Pod;
use std::fmt::Write;
use std::sync::Arc;

/// A pod with what it holds of the node.
#[derive(Clone, Debug)]
pub struct Victim {
    pub pod: Arc<Pod>,
    pub requests: Amounts,
}

/// What is missing still, by resource.
type Needs = Vec<(String, i64)>;

/// The pods to be evicted, or why there are none that would do.
pub fn choose(
    critical: &Pod,
    others: Vec<Victim>,
    short: &[Short],
) -> Result<Vec<Arc<Pod>>, String> {
    let needs: Needs = short
        .iter()
        .map(|short| (short.resource.clone(), short.missing()))
        .collect();
    let [mut best_effort, mut burstable, mut guaranteed] = by_class(critical, others);
    let all = best_effort.iter().chain(&burstable).chain(&guaranteed);
    let unmet = less(&needs, all);
    if !unmet.is_empty() {
        return Err(none_will_do(&unmet));
    }
    let needed = less(&needs, best_effort.iter().chain(&burstable));
    let from_guaranteed = closest(&mut guaranteed, needed)?;
    let needed = less(&needs, best_effort.iter().chain(&from_guaranteed));
    let from_burstable = closest(&mut burstable, needed)?;
    let needed = less(&needs, from_burstable.iter().chain(&from_guaranteed));
    let from_best_effort = closest(&mut best_effort, needed)?;
    let chosen = from_best_effort
        .into_iter()
        .chain(from_burstable)
        .chain(from_guaranteed);
    Ok(chosen.map(|victim| victim.pod).collect())
}

fn none_will_do(needs: &Needs) -> String {
    let mut text = String::from("no set of running pods found to reclaim resources: [");
    for (resource, missing) in needs {
        let _ = write!(text, "(res: {resource}, q: {missing}), ");
    }
    text.push(']');
    text
}

fn by_class(critical: &Pod, others: Vec<Victim>) -> [Vec<Victim>; 3] {
    let mut classes = [Vec::new(), Vec::new(), Vec::new()];
    for one in others {
        if !gives_way(&one.pod, critical) {
            continue;
        }
        let class = match asked::class(&one.pod).as_str() {
            "BestEffort" => 0,
            "Burstable" => 1,
            _ => 2,
        };
        classes[class].push(one);
    }
    classes
}

/// Of two critical pods the lesser one, when both have a priority: static ones may have none.
fn gives_way(pod: &Pod, critical: &Pod) -> bool {
    let priorities = spec(critical).priority.zip(spec(pod).priority);
    !asked::is_critical(pod) || priorities.is_some_and(|(own, other)| own > other)
}

/// What is missing once these are gone.
fn less<'a>(needs: &Needs, victims: impl Iterator<Item = &'a Victim> + Clone) -> Needs {
    let rest = needs.iter().map(|(resource, missing)| {
        let freed = victims.clone().map(|one| count(&one.requests, resource));
        let freed = freed.fold(0, i64::saturating_add);
        (resource.clone(), missing.saturating_sub(freed))
    });
    rest.filter(|(_, missing)| *missing > 0).collect()
}

/// One after the other, always the one that leaves least to be wanted.
fn closest(victims: &mut Vec<Victim>, mut needs: Needs) -> Result<Vec<Victim>, String> {
    let mut chosen = Vec::new();
    while !needs.is_empty() {
        let best = (0..victims.len()).min_by(|left, right| {
            let (left, right) = (&victims[*left], &victims[*right]);
            let nearer = distance(&needs, left).total_cmp(&distance(&needs, right));
            nearer.then_with(|| size(left).cmp(&size(right)))
        });
        let Some(best) = best else {
            return Err(none_will_do(&needs));
        };
        let victim = victims.swap_remove(best);
        needs = less(&needs, std::iter::once(&victim));
        chosen.push(victim);
    }
    Ok(chosen)
}

/// Of what is missing, the part that this one leaves, each resource with the same weight.
fn distance(needs: &Needs, victim: &Victim) -> f64 {
    let parts = needs.iter().map(|(resource, missing)| {
        let left = missing - count(&victim.requests, resource);
        if left > 0 {
            (left as f64 / *missing as f64).powi(2)
        } else {
            0.0
        }
    });
    parts.sum()
}

fn size(victim: &Victim) -> (i64, i64) {
    let of = |name| count(&victim.requests, name);
    (of("memory"), of("cpu"))
}

#[cfg(test)]
mod tests;
