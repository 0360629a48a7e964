//! What a write may change of a pod, by the part it goes to, and how long a pod may take to end.

use crate::json;
use crate::kinds::prepare::{keep, keep_all, put};
use crate::object::Object;
use crate::pod_spec::{profiles, resources};
use crate::resource::Part;
use serde_json::{Value, json};

pub fn prepare_create(pod: &mut Object) {
    let spec = pod.get(&["spec"]).unwrap_or(&Value::Null);
    let class = resources::quality_of_service(spec);
    let gated = !json::list(spec, "schedulingGates").is_empty();
    let mut status = json!({ "phase": "Pending", "qosClass": class });
    if gated {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.set(&["status"], status);
    apply_label_keys(pod);
    let annotations = pod.get(&["metadata", "annotations"]).cloned();
    if let (Some(annotations), Some(spec)) = (annotations, pod.get_mut(&["spec"])) {
        profiles::annotations_to_fields(&annotations, spec);
    }
}

/// A condition that a pod begins with began when the pod did.
pub fn date_conditions(pod: &mut Object, now: &str) {
    let conditions = pod.get_mut(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        json::default_text(condition, "lastTransitionTime", now);
    }
}

/// `matchLabelKeys` stand for the pod's own values of those labels: they are written into the
/// selectors, once, when the pod is created.
fn apply_label_keys(pod: &mut Object) {
    let labels = pod
        .get(&["metadata", "labels"])
        .cloned()
        .unwrap_or_default();
    for field in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = pod.get_mut(&["spec", "affinity", field]) else {
            continue;
        };
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for term in json::list_mut(affinity, required) {
            extend_selector(term, &labels);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for weighted in json::list_mut(affinity, preferred) {
            if let Some(term) = json::object_mut(weighted, "podAffinityTerm") {
                extend_selector(term, &labels);
            }
        }
    }
    if let Some(spec) = pod.get_mut(&["spec"]) {
        for constraint in json::list_mut(spec, "topologySpreadConstraints") {
            extend_selector(constraint, &labels);
        }
    }
}

fn extend_selector(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in json::list(term, field).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({ "key": key, "operator": operator, "values": [value] }));
            }
        }
    }
    if let Some(selector) = json::object_mut(term, "labelSelector").filter(|_| !added.is_empty()) {
        json::default(selector, "matchExpressions", json!([]));
        if let Some(expressions) = selector["matchExpressions"].as_array_mut() {
            expressions.extend(added);
        }
    }
}

pub fn prepare_update(new: &mut Object, old: &Object, part: Part<'_>) {
    match part {
        Part::Main => keep(new, old, &["status"]),
        Part::Status => prepare_status(new, old),
        Part::Other("ephemeralcontainers") => {
            let added = new.get(&["spec", "ephemeralContainers"]).cloned();
            keep_all(new, old);
            put(new, &["spec", "ephemeralContainers"], added);
        }
        Part::Other("resize") => prepare_resize(new, old),
        Part::Other(_) => keep(new, old, &["status"]),
    }
}

/// The status may change, and labels and annotations with it.
fn prepare_status(new: &mut Object, old: &Object) {
    keep(new, old, &["spec"]);
    keep(new, old, &["metadata", "ownerReferences"]);
    keep(new, old, &["metadata", "deletionTimestamp"]);
    if new.str(&["status", "qosClass"]).is_empty() {
        keep(new, old, &["status", "qosClass"]);
    }
    if new.i64(&["status", "observedGeneration"]).unwrap_or(0) == 0 {
        keep(new, old, &["status", "observedGeneration"]);
    }
    keep_condition_generations(new, old);
}

fn keep_condition_generations(new: &mut Object, old: &Object) {
    let mut before: Vec<(&str, i64)> = old
        .list(&["status", "conditions"])
        .iter()
        .map(|condition| {
            let generation = json::int(condition, "observedGeneration").unwrap_or(0);
            (json::text(condition, "type"), generation)
        })
        .collect();
    let conditions = new
        .get_mut(&["status", "conditions"])
        .and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let kind = json::text(condition, "type");
        let Some(at) = before.iter().position(|(other, _)| *other == kind) else {
            continue;
        };
        let (_, generation) = before.remove(at);
        if json::int(condition, "observedGeneration").unwrap_or(0) == 0 && generation != 0 {
            condition["observedGeneration"] = generation.into();
        }
    }
}

/// Only the resources of containers that are there already may change. Containers that were
/// added or renamed go through as they are: validation names them.
fn prepare_resize(new: &mut Object, old: &Object) {
    let names = |object: &Object, list: &str| -> Vec<String> {
        let containers = object.list(&["spec", list]);
        containers
            .iter()
            .map(|c| json::text(c, "name").to_owned())
            .collect()
    };
    let lists = ["containers", "initContainers"];
    if lists
        .iter()
        .any(|list| names(new, list) != names(old, list))
    {
        return keep(new, old, &["status"]);
    }
    let asked = new.clone();
    keep_all(new, old);
    for list in lists {
        let changed = asked.list(&["spec", list]);
        let kept = new.get_mut(&["spec", list]).and_then(Value::as_array_mut);
        for (container, changed) in kept.into_iter().flatten().zip(changed) {
            for field in ["resources", "resizePolicy"] {
                match changed.get(field) {
                    Some(value) => container[field] = value.clone(),
                    None => {
                        container.as_object_mut().map(|map| map.remove(field));
                    }
                }
            }
        }
    }
}

/// Seconds a pod is given to end: none when nothing runs it any more, or not yet.
pub fn grace_seconds(pod: &Object, asked: Option<i64>) -> i64 {
    let own = pod
        .i64(&["spec", "terminationGracePeriodSeconds"])
        .unwrap_or(0);
    let asked = asked.unwrap_or(own);
    let unscheduled = pod.str(&["spec", "nodeName"]).is_empty();
    let ended = matches!(pod.str(&["status", "phase"]), "Failed" | "Succeeded");
    match asked {
        _ if unscheduled || ended => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}
