//! Why pods do not run yet, in the words of whoever holds them up. Pure.

use k8s_openapi::api::core::v1::{Node, Pod};
use std::sync::Arc;

/// What the node is short of: no pod comes to it then.
pub fn pressure(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let pressed = conditions
        .iter()
        .find(|one| one.type_.ends_with("Pressure") && one.status == "True")?;
    let message = pressed.message.as_deref().unwrap_or_default();
    Some(format!("the node has {}: {message}", pressed.type_))
}

/// Of the first pod of which somebody says why.
pub fn why(pods: &[Arc<Pod>]) -> Option<String> {
    let mut pods = pods.iter();
    pods.find_map(|pod| unscheduled(pod).or(held(pod)))
}

fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions
        .iter()
        .find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    scheduled.message.clone()
}

/// Containers that are being made say nothing that is worth a line.
fn held(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let message = waiting.message.as_deref()?;
        let reason = waiting.reason.as_deref().unwrap_or_default();
        Some(format!("{reason}: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(status: Value) -> Option<String> {
        let running = json!({ "status": { "phase": "Running" } });
        let pods = [running, json!({ "status": status })];
        why(&pods.map(|pod| Arc::new(serde_json::from_value(pod).expect("a pod"))))
    }

    #[test]
    fn the_node_says_what_it_is_short_of() {
        let node = |status: &str| {
            let message = "kubelet has disk pressure";
            let ready = json!({ "type": "Ready", "status": "True" });
            let disk = json!({ "type": "DiskPressure", "status": status, "message": message });
            let node = json!({ "status": { "conditions": [ready, disk] } });
            pressure(&serde_json::from_value(node).expect("a node"))
        };
        let said = "the node has DiskPressure: kubelet has disk pressure";
        assert_eq!(node("True").as_deref(), Some(said));
        assert_eq!(node("False"), None);
    }

    #[test]
    fn the_scheduler_is_quoted() {
        let message = "0/1 nodes are available: 1 node(s) had untolerated taint(s).";
        let condition = json!({ "type": "PodScheduled", "status": "False", "message": message });
        assert_eq!(
            said(json!({ "conditions": [condition] })).as_deref(),
            Some(message)
        );
    }

    #[test]
    fn so_is_the_node() {
        let waiting = |waiting: Value| {
            let status = json!({
                "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": waiting },
            });
            said(json!({ "containerStatuses": [status] }))
        };
        let failed = json!({ "reason": "ErrImagePull", "message": "no such image" });
        assert_eq!(
            waiting(failed).as_deref(),
            Some("ErrImagePull: no such image")
        );
        assert_eq!(waiting(json!({ "reason": "ContainerCreating" })), None);
    }
}
