//! The condition that says why a pod is made to go.

use coracle_client::clock::Clock;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::pods;

const TYPE: &str = "DisruptionTarget";

#[derive(Clone, Copy, Debug)]
pub(crate) struct DisruptionTarget {
    pub reason: &'static str,
    pub message: &'static str,
    /// That was looked at, where the condition is to tell it.
    pub generation: Option<i64>,
}

impl DisruptionTarget {
    /// The strategic patch of its status; `None` when the pod says so already.
    pub(crate) fn patch(&self, pod: &Pod, clock: &Clock) -> Option<Value> {
        let known = pods::condition(pod, TYPE).filter(|known| known.status == "True");
        if known.is_some_and(|known| {
            known.reason.as_deref() == Some(self.reason)
                && known.message.as_deref() == Some(self.message)
        }) {
            return None;
        }
        let since = known.and_then(|known| known.last_transition_time.clone());
        let mut condition = json!({
            "type": TYPE,
            "status": "True",
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": since.unwrap_or_else(|| clock.time()),
        });
        if let Some(generation) = self.generation {
            condition["observedGeneration"] = json!(generation);
        }
        Some(json!({
            "metadata": { "uid": pod.metadata.uid },
            "status": { "conditions": [condition] },
        }))
    }
}
