//! Upstream's scenarios: wishes of pods, of the scheduler for all pods, and nodes by name.

use super::*;
use crate::plugins::scene::{filter, pod, score, world};
use serde_json::{Value, json};

const NODES: &str = "node a zone=1\nnode b zone=2\nnode c zone=2 disk=fast\n";

fn on_label(key: &str, value: &str) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]})
}

fn named(operator: &str, names: &[&str]) -> Value {
    json!({"matchFields": [{"key": "metadata.name", "operator": operator, "values": names}]})
}

fn requires(terms: &[Value]) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
}

fn with(affinity: Value) -> PodInfo {
    pod("", json!({"affinity": {"nodeAffinity": affinity}}))
}

fn said(plugin: &NodeAffinity, pod: &PodInfo) -> String {
    let said = filter(plugin, pod, &world(NODES));
    said.replace(REASON_ENFORCED, "enforced")
        .replace(REASON, "other")
}

fn added(affinity: Value) -> NodeAffinity {
    NodeAffinity::new(serde_json::from_value(affinity).unwrap())
}

#[test]
fn selector_and_terms_must_both_hold() {
    let plugin = NodeAffinity::default();
    assert_eq!(said(&plugin, &pod("", json!({}))), "skipped");
    let selected = pod("", json!({"nodeSelector": {"zone": "2"}}));
    assert_eq!(said(&plugin, &selected), "a other!, b fits, c fits");
    let affinity = json!({"nodeAffinity": requires(&[on_label("disk", "fast")])});
    let both = pod(
        "",
        json!({"nodeSelector": {"zone": "2"}, "affinity": affinity}),
    );
    assert_eq!(said(&plugin, &both), "a other!, b other!, c fits");
}

#[test]
fn nodes_by_name_are_the_only_ones() {
    let plugin = NodeAffinity::default();
    let of = |terms: &[Value]| said(&plugin, &with(requires(terms)));
    assert_eq!(of(&[named("In", &["b"])]), r#"only {"b"}"#);
    assert_eq!(
        of(&[named("In", &["b"]), named("In", &["a"])]),
        r#"only {"a", "b"}"#
    );
    assert_eq!(
        of(&[named("In", &["b"]), on_label("zone", "1")]),
        "a fits, b fits, c other!"
    );
    assert_eq!(of(&[named("NotIn", &["b"])]), "a fits, b other!, c fits");
    let twice = json!({"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["a"]},
        {"key": "metadata.name", "operator": "In", "values": ["b"]}]});
    assert_eq!(of(&[twice]), "pod affinity terms conflict!");
}

#[test]
fn what_the_scheduler_asks_for_comes_before_what_the_pod_asks_for() {
    let plugin = added(requires(&[on_label("zone", "2")]));
    assert_eq!(
        said(&plugin, &pod("", json!({}))),
        "a enforced!, b fits, c fits"
    );
    let fast = with(requires(&[on_label("disk", "fast")]));
    assert_eq!(said(&plugin, &fast), "a enforced!, b other!, c fits");
}

fn prefers(weight: i32, term: &Value) -> Value {
    let one = json!({"weight": weight, "preference": term});
    json!({"preferredDuringSchedulingIgnoredDuringExecution": [one]})
}

#[test]
fn wishes_of_the_scheduler_add_to_those_of_the_pod() {
    let of = |plugin: &NodeAffinity, pod: &PodInfo| score(plugin, pod, &world(NODES), &[]);
    let plain = NodeAffinity::default();
    assert_eq!(of(&plain, &pod("", json!({}))), "skipped");
    let fast = with(prefers(3, &on_label("disk", "fast")));
    assert_eq!(of(&plain, &fast), "a=0 b=0 c=100");
    let plugin = added(prefers(1, &on_label("zone", "2")));
    assert_eq!(of(&plugin, &pod("", json!({}))), "a=0 b=100 c=100");
    assert_eq!(of(&plugin, &fast), "a=0 b=25 c=100");
}

#[test]
fn a_node_wakes_when_it_begins_to_match() {
    let node = |line: &str| world(line).nodes[0].facts.clone();
    let fast = with(requires(&[on_label("disk", "fast")]));
    let helps = |plugin: &NodeAffinity, change: WorldChange| plugin.can_help(&change, &fast);
    let update = |old, new| WorldChange::NodeUpdated {
        old: node(old),
        new: node(new),
    };
    let plain = NodeAffinity::default();
    assert!(helps(
        &plain,
        WorldChange::NodeAdded(node("node a disk=fast"))
    ));
    assert!(!helps(&plain, WorldChange::NodeAdded(node("node a"))));
    assert!(helps(&plain, update("node a", "node a disk=fast")));
    assert!(!helps(
        &plain,
        update("node a disk=fast", "node a disk=fast x=1")
    ));
    let plugin = added(requires(&[on_label("zone", "2")]));
    assert!(!helps(
        &plugin,
        update("node a zone=1", "node a zone=1 disk=fast")
    ));
    assert!(helps(
        &plugin,
        update("node a zone=1 disk=fast", "node a zone=2 disk=fast")
    ));
}
