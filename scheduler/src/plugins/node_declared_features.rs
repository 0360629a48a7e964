//! Filter: rejects a node that does not say it can do what the pod needs (KEP-5328).
//!
//! Only what schedulers have to ask for is known here: other features matter when pods are updated.

use crate::cache::Snapshot;
use crate::framework::{Plugin, Points, PreFilter, Reason, Slot, Verdict, WorldChange};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::PodSpec;

const REASON: &str = "node(s) didn't match Pod's required features";
/// Rules by which the end of one container starts all of the pod anew.
const RESTART_ALL: &str = "RestartAllContainersOnContainerExits";
/// A user namespace beside the network of the machine.
const USERS_ON_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";

#[derive(Debug)]
pub struct NodeDeclaredFeatures;

fn required(spec: &PodSpec) -> Vec<&'static str> {
    let init = spec.init_containers.iter().flatten();
    let mut rules = init
        .chain(&spec.containers)
        .flat_map(|container| container.restart_policy_rules.iter().flatten());
    let mut features = Vec::new();
    if rules.any(|rule| rule.action == "RestartAllContainers") {
        features.push(RESTART_ALL);
    }
    if spec.host_network == Some(true) && spec.host_users == Some(false) {
        features.push(USERS_ON_HOST_NETWORK);
    }
    features
}

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatures"
    }

    fn points(&self) -> Points {
        Points::PREPARED_FILTER
    }

    fn pre_filter(&self, pod: &PodInfo, _world: &Snapshot, slot: &mut Slot) -> PreFilter {
        let spec = pod.waiting.as_ref().and_then(|pod| pod.spec.as_ref());
        let required = spec.map(required).unwrap_or_default();
        if required.is_empty() {
            return PreFilter::Skip;
        }
        slot.set(required);
        PreFilter::Filter
    }

    fn filter(&self, _pod: &PodInfo, node: &NodeInfo, slot: &Slot) -> Verdict {
        let declared = &node.facts.declared_features;
        let has = |feature: &&str| declared.iter().any(|one| **one == **feature);
        let required = slot.get::<Vec<&'static str>>();
        match required.into_iter().flatten().all(has) {
            true => Verdict::Fit,
            false => Verdict::Unresolvable(Reason::Text(REASON)),
        }
    }

    /// What a pod needs is in fields that nobody changes.
    fn can_help(&self, change: &WorldChange, _pod: &PodInfo) -> bool {
        change.changes(|old, new| old.declared_features != new.declared_features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::scene::{filter, pod, world};
    use serde_json::json;
    use std::sync::Arc;

    const NODES: &str = "node a\nnode b feature=RestartAllContainersOnContainerExits\n\
                         node c feature=Other feature=UserNamespacesHostNetworkSupport";

    #[test]
    fn a_pod_goes_where_the_node_says_that_it_can_do_what_it_needs() {
        let said = |spec| filter(&NodeDeclaredFeatures, &pod("", spec), &world(NODES));
        let refused = "node(s) didn't match Pod's required features!";
        let rules = |action: &str| {
            json!([{ "name": "c", "restartPolicyRules": [{
            "action": action, "exitCodes": { "operator": "In", "values": [1] } }] }])
        };
        assert_eq!(said(json!({ "containers": rules("Restart") })), "skipped");
        let all = rules("RestartAllContainers");
        let only_b = format!("a {refused}, b fits, c {refused}");
        assert_eq!(said(json!({ "containers": all })), only_b);
        assert_eq!(said(json!({ "initContainers": all })), only_b);
        let only_c = format!("a {refused}, b {refused}, c fits");
        assert_eq!(
            said(json!({ "hostNetwork": true, "hostUsers": false })),
            only_c
        );
        for spec in [
            json!({ "hostNetwork": true }),
            json!({ "hostUsers": false }),
        ] {
            assert_eq!(said(spec), "skipped");
        }
        let nowhere = format!("a {refused}, b {refused}, c {refused}");
        let both = json!({ "containers": all, "hostNetwork": true, "hostUsers": false });
        assert_eq!(said(both), nowhere);
    }

    #[test]
    fn a_node_that_says_more_than_before_wakes() {
        let node = |line: &str| world(line).nodes[0].facts.clone();
        let waits = pod("", json!({}));
        let helps = |change| NodeDeclaredFeatures.can_help(&change, &waits);
        let update = |old, new| WorldChange::NodeUpdated {
            old: node(old),
            new: node(new),
        };
        assert!(helps(WorldChange::NodeAdded(node("node a"))));
        assert!(helps(update("node a", "node a feature=Other")));
        assert!(!helps(update(
            "node a feature=Other",
            "node a feature=Other x=1"
        )));
        assert!(!helps(WorldChange::PodGone(Arc::new(pod("", json!({}))))));
        assert!(!helps(WorldChange::Itself));
    }
}
