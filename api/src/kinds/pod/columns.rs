//! What `kubectl get pods` prints.

use super::summary;
use crate::json;
use crate::kinds::row::{self, column, wide};
use crate::object::Object;
use crate::print;
use crate::resource::Column;
use serde_json::Value;

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Ready",
        "string",
        "The aggregate readiness state of this pod for accepting traffic.",
    ),
    column(
        "Status",
        "string",
        "The aggregate status of the containers in this pod.",
    ),
    column(
        "Restarts",
        "string",
        "The number of times the containers in this pod have been restarted and when the last \
         container in this pod has restarted.",
    ),
    row::AGE,
    wide(
        "IP",
        "string",
        "The address of the pod, empty until it has one.",
    ),
    wide("Node", "string", "The node that the pod is scheduled to."),
    wide(
        "Nominated Node",
        "string",
        "The node where the pod may be scheduled once the pods it preempts are gone.",
    ),
    wide(
        "Readiness Gates",
        "string",
        "How many of the conditions that the pod waits for are true.",
    ),
];

const NONE: &str = "<none>";

pub fn cells(pod: &Object, now: i64) -> Vec<Value> {
    let summary = summary::of(pod);
    let restarts = match (summary.restarts, &summary.last_restart) {
        (0, _) | (_, None) => summary.restarts.to_string(),
        (count, Some(time)) => format!("{count} ({} ago)", print::age(time, now)),
    };
    let ip = json::list(pod.get(&["status"]).unwrap_or(&Value::Null), "podIPs")
        .first()
        .map_or("", |ip| json::text(ip, "ip"));
    vec![
        pod.name().into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        print::age(pod.str(&["metadata", "creationTimestamp"]), now).into(),
        or_none(ip),
        or_none(pod.str(&["spec", "nodeName"])),
        or_none(pod.str(&["status", "nominatedNodeName"])),
        readiness_gates(pod).into(),
    ]
}

fn or_none(text: &str) -> Value {
    if text.is_empty() {
        NONE.into()
    } else {
        text.into()
    }
}

fn readiness_gates(pod: &Object) -> String {
    let gates = pod.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let is_true = |gate: &&Value| {
        let kind = json::text(gate, "conditionType");
        pod.list(&["status", "conditions"])
            .iter()
            .find(|condition| json::text(condition, "type") == kind)
            .is_some_and(|condition| json::text(condition, "status") == "True")
    };
    format!("{}/{}", gates.iter().filter(is_true).count(), gates.len())
}
