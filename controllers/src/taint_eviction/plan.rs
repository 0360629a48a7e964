//! Whether a pod has to leave its node, and when. Pure.

use coracle_client::clock::Instant;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::tolerations::{Bears, bears};
use crate::pods;

const NO_EXECUTE: &str = "NoExecute";

/// A deletion that waits for its time, or that was asked for already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scheduled {
    pub(super) uid: String,
    pub(super) at: Instant,
    /// The informer may not show it yet.
    pub(super) done: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// All is done.
    Nothing,
    /// The pod stays; what was scheduled is not any more.
    Stay,
    Schedule(Instant),
    Delete,
}

pub(super) fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    let all = taints.unwrap_or_default().iter();
    all.filter(|taint| taint.effect == NO_EXECUTE)
}

pub(super) fn is_tainted(node: &Node) -> bool {
    no_execute(node).next().is_some()
}

/// `scheduled` is that of this very pod. A pod whose node is gone keeps its time: the node's
/// taints were the last that was known of it.
pub(super) fn plan(
    pod: &Pod,
    node: Option<&Node>,
    scheduled: Option<&Scheduled>,
    now: Instant,
) -> Decision {
    if scheduled.is_some_and(|scheduled| scheduled.done) {
        return Decision::Nothing;
    }
    if pods::is_deleting(pod) || pods::node_name(pod).is_empty() {
        return Decision::Stay;
    }
    let before = scheduled.map(|scheduled| scheduled.at);
    let at = match node {
        None => before,
        Some(node) if !is_tainted(node) => None,
        Some(node) => {
            let tolerations = pod
                .spec
                .as_ref()
                .and_then(|spec| spec.tolerations.as_deref());
            match bears(tolerations.unwrap_or_default(), no_execute(node)) {
                Bears::Forever => None,
                // A time that runs is not prolonged by a taint that follows another.
                Bears::For(time) => Some(before.map_or(now + time, |at| at.min(now + time))),
            }
        }
    };
    match at {
        None => Decision::Stay,
        Some(at) if at <= now => Decision::Delete,
        Some(at) => Decision::Schedule(at),
    }
}

#[cfg(test)]
mod tests;
