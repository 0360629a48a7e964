//! An Eviction asks a pod to go: whether its disruption budget lets it, and what it leaves in both
//! before the pod is deleted.

use crate::object::Object;
use crate::{json, label_selector};
use serde_json::{Value, json};

/// Evictions that a budget's controller has not seen yet. Upstream's bound.
const DISRUPTED_PODS_MAX: usize = 2000;
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// Says in the status why the pod ends, as a Job's failure policy and a user want to read it.
/// `now` is the RFC 3339 time of the transition.
pub fn mark(pod: &mut Object, now: &str) {
    let mut conditions = pod.list(&["status", "conditions"]).to_vec();
    let at = conditions
        .iter()
        .position(|condition| json::text(condition, "type") == "DisruptionTarget");
    // One that was true already has been so since.
    let since = at
        .map(|at| &conditions[at])
        .filter(|condition| json::text(condition, "status") == "True")
        .and_then(|condition| condition["lastTransitionTime"].as_str())
        .unwrap_or(now)
        .to_owned();
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    pod.set(&["status", "conditions"], conditions.into());
}

/// True for a pod that will not run any more.
pub fn has_ended(pod: &Object) -> bool {
    matches!(pod.str(&["status", "phase"]), "Succeeded" | "Failed") || pod.is_deleting()
}

/// True for a pod that is no loss: it has ended, or has not begun.
pub fn ignores_budgets(pod: &Object) -> bool {
    has_ended(pod) || pod.str(&["status", "phase"]) == "Pending"
}

/// True when the budget is about the pod. Both are of one namespace.
pub fn selects(budget: &Object, pod: &Object) -> bool {
    let selector = budget.get(&["spec", "selector"]);
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
        return false;
    };
    let path = crate::field::Path::default();
    let labels = pod.get(&["metadata", "labels"]).unwrap_or(&Value::Null);
    label_selector::validate(selector, &path).is_empty()
        && label_selector::matches(selector, labels)
}

fn count(budget: &Object, name: &str) -> i64 {
    budget.i64(&["status", name]).unwrap_or(0)
}

/// True for a pod that is not ready, where the budget lets such a one go for nothing.
pub fn is_spared(pod: &Object, budget: &Object) -> bool {
    let is_ready = pod
        .list(&["status", "conditions"])
        .iter()
        .any(|one| json::text(one, "type") == "Ready" && json::text(one, "status") == "True");
    let desired = count(budget, "desiredHealthy");
    let is_whole = count(budget, "currentHealthy") >= desired && desired > 0;
    let policy = budget.str(&["spec", "unhealthyPodEvictionPolicy"]);
    !is_ready && (policy == "AlwaysAllow" || is_whole)
}

/// How it went to take a disruption from a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Charge {
    Taken,
    /// The budget's controller has not seen its newest spec.
    Behind,
    /// Nothing is left, and why.
    Empty(String),
    /// The budget itself is not as it should be.
    Broken(&'static str),
}

/// Takes a disruption from the budget for the named pod.
pub fn charge(budget: &mut Object, pod: &str, now: &str) -> Charge {
    if count(budget, "observedGeneration") < budget.generation() {
        return Charge::Behind;
    }
    let allowed = count(budget, "disruptionsAllowed");
    let pods = budget.get(&["status", "disruptedPods"]);
    if allowed < 0 {
        return Charge::Broken("pdb disruptions allowed is negative");
    }
    let known = pods.and_then(Value::as_object).map_or(0, |pods| pods.len());
    if known > DISRUPTED_PODS_MAX {
        return Charge::Broken(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        return Charge::Empty(why_empty(budget));
    }
    budget.set(&["status", "disruptionsAllowed"], (allowed - 1).into());
    if allowed == 1 {
        nothing_left(budget, now);
    }
    budget.set(&["status", "disruptedPods", pod], now.into());
    Charge::Taken
}

fn why_empty(budget: &Object) -> String {
    let name = budget.name();
    let conditions = budget.list(&["status", "conditions"]);
    let condition = conditions
        .iter()
        .find(|one| json::text(one, "type") == DISRUPTION_ALLOWED)
        .unwrap_or(&json::NULL);
    let [reason, message] = ["reason", "message"].map(|field| json::text(condition, field));
    let is_told = json::text(condition, "status") == "False" && !message.is_empty();
    let [desired, current] = ["desiredHealthy", "currentHealthy"].map(|field| count(budget, field));
    if is_told && reason == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it \
             failed sync: {message}"
        )
    } else if current <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    } else if is_told {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

/// What the budget's controller would say of it now.
fn nothing_left(budget: &mut Object, now: &str) {
    let mut conditions = budget.list(&["status", "conditions"]).to_vec();
    let observed = count(budget, "observedGeneration");
    let place = conditions
        .iter()
        .position(|one| json::text(one, "type") == DISRUPTION_ALLOWED);
    let before = place.map(|place| &conditions[place]);
    let since = before
        .filter(|one| json::text(one, "status") == "False")
        .map_or(now, |one| json::text(one, "lastTransitionTime"));
    let mut condition = json!({
        "type": DISRUPTION_ALLOWED, "status": "False", "reason": "InsufficientPods",
        "message": "", "lastTransitionTime": since,
    });
    if observed != 0 {
        condition["observedGeneration"] = observed.into();
    }
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
    budget.set(&["status", "conditions"], conditions.into());
}

#[cfg(test)]
mod tests;
