//! Replaces the pods of older templates, within what may be missing or doubled. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::plan::{Observed, Plan};
use crate::pods;

/// The pods of one node that are not being deleted.
enum OnNode<'a> {
    Empty,
    New(&'a Arc<Pod>),
    Old(&'a Arc<Pod>),
    Both {
        new: &'a Arc<Pod>,
        old: &'a Arc<Pod>,
    },
    /// More than one of a kind, which the next pass puts right.
    TooMany,
}

fn on_node<'a>(observed: &Observed<'_>, pods: &'a [Arc<Pod>]) -> OnNode<'a> {
    let living = pods.iter().filter(|pod| !pods::is_deleting(pod));
    let (new, old): (Vec<_>, Vec<_>) = living.partition(|pod| observed.is_updated(pod));
    match (new.as_slice(), old.as_slice()) {
        ([], []) => OnNode::Empty,
        ([new], []) => OnNode::New(new),
        ([], [old]) => OnNode::Old(old),
        ([new], [old]) => OnNode::Both { new, old },
        _ => OnNode::TooMany,
    }
}

/// The next step of a rolling update; there is none for `OnDelete`.
pub(super) fn advance(observed: &Observed<'_>, plan: &mut Plan) {
    let Some(rolling) = &observed.spec.rolling else {
        return;
    };
    let wanted = observed.nodes.values().filter(|node| node.run).count();
    match rolling.surge(wanted) {
        0 => make_room(observed, rolling.unavailable(wanted), plan),
        surge => double(observed, surge, wanted, plan),
    }
}

/// Deletes old pods, and the next passes put new ones in their place. An old pod that does not
/// serve anyway is always replaced; of the others as many go as may be missing.
fn make_room(observed: &Observed<'_>, max_unavailable: usize, plan: &mut Plan) {
    let without_pods = observed
        .nodes
        .iter()
        .filter(|(node, placement)| placement.run && !observed.pods.contains_key(*node));
    let mut unavailable = without_pods.count();
    let mut candidates = Vec::new();
    for pods in observed.pods.values() {
        match on_node(observed, pods) {
            OnNode::New(pod) if observed.is_available(pod) => {}
            OnNode::Old(pod) if observed.is_available(pod) => candidates.push(pod),
            OnNode::Old(pod) => {
                plan.delete.push(pod.clone());
                unavailable += 1;
            }
            OnNode::New(_) | OnNode::Empty | OnNode::Both { .. } | OnNode::TooMany => {
                unavailable += 1;
            }
        }
    }
    let more = max_unavailable.saturating_sub(unavailable);
    plan.delete
        .extend(candidates.into_iter().take(more).cloned());
}

/// Creates new pods beside old ones, and deletes an old one once its successor is available.
fn double(observed: &Observed<'_>, max_surge: usize, wanted: usize, plan: &mut Plan) {
    let (mut doubled, mut available) = (0, 0);
    let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
    for (node, pods) in observed.pods {
        let on_node = on_node(observed, pods);
        if let OnNode::New(pod) | OnNode::Old(pod) | OnNode::Both { old: pod, .. } = &on_node
            && observed.is_available(pod)
        {
            available += 1;
        }
        match on_node {
            OnNode::Empty | OnNode::New(_) => {}
            OnNode::TooMany => doubled += 1,
            OnNode::Both { new, old } if observed.is_available(new) => {
                plan.delete.push(old.clone());
            }
            OnNode::Both { .. } => doubled += 1,
            OnNode::Old(pod) => match (observed.placement(node).run, observed.is_available(pod)) {
                (true, true) => candidates.push(node),
                (true, false) => plan.create.push(node.clone()),
                (false, true) => misplaced.push(pod),
                (false, false) => plan.delete.push(pod.clone()),
            },
        }
    }
    // Where no pod belongs any more, the old one goes only once it is not needed.
    let spare = usize::saturating_sub(available, wanted);
    plan.delete
        .extend(misplaced.into_iter().take(spare).cloned());
    let more = max_surge.saturating_sub(doubled);
    plan.create
        .extend(candidates.into_iter().take(more).cloned());
}
