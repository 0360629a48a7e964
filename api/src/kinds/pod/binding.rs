//! A Binding puts a pod on a node: what is wrong with one, and what it does to the pod.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::object::Object;
use serde_json::{Value, json};

/// Why a pod cannot be bound; the text of the Conflict about `pods/binding`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("pod {0} is being deleted, cannot be assigned to a host")]
    Deleting(String),
    #[error("pod {0} is already assigned to node \"{1}\"")]
    Assigned(String, String),
    #[error("pod {0} has non-empty .spec.schedulingGates")]
    Gated(String),
}

pub fn validate(binding: &Object) -> ErrorList {
    let path = Path::root("target");
    let mut errors = ErrorList::new();
    let kind = binding.str(&["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        let supported = &["Node", "<empty>"];
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            kind,
            supported,
        ));
    }
    if binding.str(&["target", "name"]).is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    errors
}

/// Puts the pod on the binding's node; labels and annotations of the binding go over to the pod.
/// `now` is the RFC 3339 time of the transition.
pub fn bind(pod: &mut Object, binding: &Object, now: &str) -> Result<(), BindError> {
    let name = pod.name().to_owned();
    if pod.is_deleting() {
        return Err(BindError::Deleting(name));
    }
    let assigned = pod.str(&["spec", "nodeName"]);
    if !assigned.is_empty() {
        return Err(BindError::Assigned(name, assigned.to_owned()));
    }
    if !pod.list(&["spec", "schedulingGates"]).is_empty() {
        return Err(BindError::Gated(name));
    }
    pod.set(
        &["spec", "nodeName"],
        binding.str(&["target", "name"]).into(),
    );
    pod.remove(&["status", "nominatedNodeName"]);
    for map in ["annotations", "labels"] {
        for (key, value) in binding.string_map(&["metadata", map]) {
            pod.set(&["metadata", map, key], value.into());
        }
    }
    scheduled(pod, now);
    Ok(())
}

fn scheduled(pod: &mut Object, now: &str) {
    let mut conditions = pod.list(&["status", "conditions"]).to_vec();
    let before = conditions
        .iter()
        .position(|c| json::text(c, "type") == "PodScheduled");
    let since = before
        .map(|index| &conditions[index])
        .filter(|condition| json::text(condition, "status") == "True")
        .map_or(Value::from(now), |condition| {
            json::get(condition, "lastTransitionTime").clone()
        });
    let condition = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    match before {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    pod.set(&["status", "conditions"], conditions.into());
}

#[cfg(test)]
mod tests;
