//! Pod disruption budgets: how many pods may be evicted at a time.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{checks, prepare};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, label_selector, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["pdb"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "policy",
        "v1",
        Names {
            kind: "PodDisruptionBudget",
            plural: "poddisruptionbudgets",
            singular: "poddisruptionbudget",
            schema: "io.k8s.api.policy.v1.PodDisruptionBudget",
        },
        &PodDisruptionBudget,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Min Available",
        "string",
        "The minimum number of pods that must be available.",
    ),
    column(
        "Max Unavailable",
        "string",
        "The maximum number of pods that may be unavailable.",
    ),
    column(
        "Allowed Disruptions",
        "integer",
        "Calculated number of pods that may be disrupted at this time.",
    ),
    row::AGE,
];

/// Counts that are shown even when they are zero.
const COUNTS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

#[derive(Debug)]
struct PodDisruptionBudget;

impl Rules for PodDisruptionBudget {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "status", json!({}));
        if let Some(status) = object.get_mut(&["status"]) {
            for name in COUNTS {
                json::default(status, name, 0);
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
        self.default(object);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        spec(object.get(&["spec"]).unwrap_or(&Value::Null))
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => status(new),
            Part::Main | Part::Other(_) => self.validate_create(new),
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let bound = |name: &str| match object.get(&["spec", name]) {
            None | Some(Value::Null) => "N/A".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        vec![
            object.name().into(),
            bound("minAvailable").into(),
            bound("maxUnavailable").into(),
            object
                .i64(&["status", "disruptionsAllowed"])
                .unwrap_or(0)
                .into(),
            print::age_of(object, now),
        ]
    }
}

fn spec(spec: &Value) -> ErrorList {
    let path = Path::root("spec");
    let mut errors = ErrorList::new();
    let bounds = ["minAvailable", "maxUnavailable"];
    if bounds.iter().all(|name| json::has(spec, name)) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let error = FieldError::invalid(&path, spec.clone(), detail);
        errors.push(error.as_go("io.k8s.api.policy.v1.PodDisruptionBudgetSpec"));
    }
    for name in bounds {
        let (value, path) = (json::get(spec, name), path.child(name));
        errors.extend(checks::count_or_percent(value, &path));
        errors.extend(checks::at_most_all(value, &path));
    }
    let selector = json::get(spec, "selector");
    errors.extend(label_selector::validate(selector, &path.child("selector")));
    if let Some(policy) = json::some(spec, "unhealthyPodEvictionPolicy").and_then(Value::as_str) {
        let supported = &["AlwaysAllow", "IfHealthyBudget"];
        let path = path.child("unhealthyPodEvictionPolicy");
        checks::one_of(&mut errors, policy, supported, &path);
    }
    errors
}

fn status(object: &Object) -> ErrorList {
    let path = Path::root("status");
    let conditions = object.list(&["status", "conditions"]);
    let mut errors = checks::conditions(conditions, &path.child("conditions"));
    let status = object.get(&["status"]).unwrap_or(&Value::Null);
    for name in COUNTS {
        checks::nonnegative(&mut errors, status, name, &path);
    }
    errors
}

#[cfg(test)]
mod tests;
