//! What the node's owner should know of policies: in the log, and as an event of the node.

use coracle_client::events::{EventType, Recorder};
use k8s_openapi::api::core::v1::ObjectReference;

const REASON: &str = "NetworkPoliciesUnknown";

#[derive(Clone, Debug)]
pub struct Voice {
    recorder: Recorder,
    node: ObjectReference,
}

impl Voice {
    pub fn new(recorder: Recorder, node_name: &str) -> Self {
        Self {
            recorder,
            node: crate::node::reference(node_name),
        }
    }

    pub fn say(&self, message: &str) {
        tracing::warn!("{message}");
        let kind = EventType::Warning;
        self.recorder.event(&self.node, kind, REASON, message);
    }
}
