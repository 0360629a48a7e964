//! What several loops read off a node. Pure.

use k8s_openapi::api::core::v1::{Node, NodeCondition};

pub(crate) fn conditions(node: &Node) -> &[NodeCondition] {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_deref());
    conditions.unwrap_or_default()
}

/// The condition that says whether the node takes pods.
pub(crate) fn ready(node: &Node) -> Option<&NodeCondition> {
    conditions(node).iter().find(|one| one.type_ == "Ready")
}

/// The node says so itself: one that is not heard of is not ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    ready(node).is_some_and(|ready| ready.status == "True")
}
