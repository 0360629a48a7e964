//! An Eviction asks a pod to go: what that leaves in the pod's status before it is deleted.

use crate::json;
use crate::object::Object;
use serde_json::json;

/// Says in the status why the pod ends, as a Job's failure policy and a user want to read it.
/// `now` is the RFC 3339 time of the transition.
pub fn mark(pod: &mut Object, now: &str) {
    let mut conditions = pod.list(&["status", "conditions"]).to_vec();
    conditions.retain(|condition| json::text(condition, "type") != "DisruptionTarget");
    conditions.push(json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    }));
    pod.set(&["status", "conditions"], conditions.into());
}
