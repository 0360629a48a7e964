//! Every lack of a node is told.

use super::*;
use crate::node_facts::NodeFacts;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;
use std::sync::Arc;

fn pod(requests: serde_json::Value) -> PodInfo {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "p", "uid": "u" },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": requests } }] },
    }))
    .unwrap();
    PodInfo::new(Arc::new(pod))
}

fn node(allocatable: serde_json::Value) -> Node {
    let node = json!({ "metadata": { "name": "n" }, "status": { "allocatable": allocatable } });
    serde_json::from_value(node).unwrap()
}

fn reasons(requests: serde_json::Value, allocatable: serde_json::Value) -> Vec<String> {
    let info = NodeInfo::of(&node(allocatable));
    let pod = pod(requests);
    let mut texts = Vec::new();
    let verdict = NodeResourcesFit::default().filter(&pod, &info, &Slot::default());
    if let Some(reason) = verdict.into_reason() {
        reason.each(&pod, |text| texts.push(text));
    }
    texts
}

#[test]
fn every_lack_is_told() {
    let small = json!({ "cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "0" });
    let asked = json!({
        "cpu": "2", "memory": "2Gi", "ephemeral-storage": "2Gi", "example.com/b": "1",
        "example.com/a": "0",
    });
    assert_eq!(
        reasons(asked, small),
        [
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            "Insufficient ephemeral-storage",
            "Insufficient example.com/b",
        ]
    );
}

#[test]
fn exactly_enough_fits() {
    let node = json!({ "cpu": "2", "memory": "2Gi", "example.com/a": "3", "pods": "1" });
    assert!(
        reasons(
            json!({ "cpu": "2", "memory": "2Gi", "example.com/a": "3" }),
            node
        )
        .is_empty()
    );
}

#[test]
fn a_node_too_small_when_empty_does_not_wake_a_pod() {
    let asks = pod(json!({ "cpu": "4" }));
    let of = |cpu: &str, pods: &str| NodeFacts::of(&node(json!({ "cpu": cpu, "pods": pods })));
    let small = WorldChange::NodeAdded(of("2", "9"));
    let large = WorldChange::NodeAdded(of("8", "9"));
    let updated = |old, new| WorldChange::NodeUpdated { old, new };
    let helps = |change: WorldChange| NodeResourcesFit::default().can_help(&change, &asks);
    assert!(
        helps(updated(of("2", "9"), of("8", "9"))) && helps(updated(of("8", "8"), of("8", "9")))
    );
    assert!(
        !helps(updated(of("8", "9"), of("8", "8"))),
        "there is not more of anything"
    );
    assert!(!helps(WorldChange::NodeAdded(of("8", "0"))));
    assert!(!NodeResourcesFit::default().can_help(&small, &asks));
    assert!(NodeResourcesFit::default().can_help(&large, &asks));
}

#[test]
fn a_pod_that_asks_for_less_than_before_wakes_others() {
    let asks = pod(json!({ "cpu": "4" }));
    let update = |old, new| WorldChange::PodUpdated {
        old: Arc::new(pod(json!({ "cpu": old }))),
        new: Arc::new(pod(json!({ "cpu": new }))),
    };
    assert!(NodeResourcesFit::default().can_help(&update("2", "1"), &asks));
    assert!(!NodeResourcesFit::default().can_help(&update("1", "2"), &asks));
}

fn verdict(args: Args, requests: serde_json::Value) -> Verdict {
    let there = json!({ "cpu": "2", "pods": "9", "example.com/a": "1" });
    let mut info = NodeInfo::of(&node(there));
    info.add_pod(Arc::new(pod(json!({ "cpu": "1", "example.com/a": "1" }))));
    NodeResourcesFit::new(args, Offers::default()).filter(&pod(requests), &info, &Slot::default())
}

#[test]
fn evictions_help_where_the_node_is_large_enough() {
    let of = |requests| verdict(Args::default(), requests);
    assert!(matches!(
        of(json!({ "cpu": "2" })),
        Verdict::Unschedulable(_)
    ));
    assert!(matches!(
        of(json!({ "cpu": "3" })),
        Verdict::Unresolvable(_)
    ));
    assert!(matches!(
        of(json!({ "example.com/a": "1" })),
        Verdict::Unschedulable(_)
    ));
    assert!(matches!(
        of(json!({ "example.com/b": "1" })),
        Verdict::Unresolvable(_)
    ));
}

#[test]
fn resources_that_others_see_to_are_left_aside() {
    let args = || Args {
        ignored_resources: vec!["example.com/a".to_owned(), "hugepages-2Mi".to_owned()],
        ignored_resource_groups: vec!["other.io".to_owned()],
        ..Args::default()
    };
    assert_eq!(
        verdict(args(), json!({ "example.com/a": "5" })),
        Verdict::Fit
    );
    assert_eq!(
        verdict(args(), json!({ "other.io/any": "5" })),
        Verdict::Fit
    );
    assert_ne!(
        verdict(args(), json!({ "example.com/b": "5" })),
        Verdict::Fit
    );
    assert_ne!(
        verdict(args(), json!({ "hugepages-2Mi": "2Mi" })),
        Verdict::Fit,
        "not extended"
    );
}

/// The score of a node of 4 cpus and 10000 bytes with a pod of these requests on it, for another.
fn score(strategy: Strategy, there: serde_json::Value, new: serde_json::Value) -> i64 {
    let all = json!({ "cpu": "4", "memory": "10000", "pods": "9", "x.io/a": "4" });
    let mut info = NodeInfo::of(&node(all));
    info.add_pod(Arc::new(pod(there)));
    let mut resources = super::super::node_resources::default_resources();
    resources.push(super::super::node_resources::Weighted {
        resource: super::super::node_resources::Resource::named("x.io/a"),
        weight: 2,
    });
    let scoring = Scoring {
        strategy,
        resources,
    };
    let args = Args {
        scoring,
        ..Args::default()
    };
    let plugin = NodeResourcesFit::new(args, Offers::default());
    plugin.score(&pod(new), &info, &Snapshot::default(), &Slot::default())
}

#[test]
fn strategies_value_what_is_left_or_what_is_used() {
    let of = |cpu: &str, memory: &str| json!({ "cpu": cpu, "memory": memory });
    let both = |strategy| score(strategy, of("1", "2000"), of("2", "3000"));
    assert_eq!(
        both(Strategy::LeastAllocated),
        37,
        "a quarter of cpu and a half of memory"
    );
    assert_eq!(both(Strategy::MostAllocated), 62);
    let over = |strategy| score(strategy, of("3", "9000"), of("3", "9000"));
    assert_eq!(over(Strategy::LeastAllocated), 0);
    assert_eq!(over(Strategy::MostAllocated), 100);
    let with = json!({ "cpu": "1", "memory": "5000", "x.io/a": "1" });
    let asks = json!({ "cpu": "1", "memory": "0", "x.io/a": "2" });
    assert_eq!(
        score(Strategy::MostAllocated, with, asks),
        (50 + 50 + 2 * 75) / 4
    );
}

#[test]
fn a_curve_is_straight_between_its_points() {
    let point = |utilization, score| Point { utilization, score };
    let curve =
        || Strategy::RequestedToCapacityRatio(vec![point(0, 0), point(70, 100), point(100, 20)]);
    let of = |cpu: &str| {
        let none = json!({ "cpu": "0", "memory": "0" });
        score(curve(), none, json!({ "cpu": cpu, "memory": "0" }))
    };
    assert_eq!(of("1"), 35, "memory gets nothing and is left out");
    assert_eq!(of("2"), 71);
    assert_eq!(of("3"), 87);
    assert_eq!(of("4"), 20);
    assert_eq!(of("9"), 20);
}
