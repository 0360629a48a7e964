//! What is kept of nodes, and what they share.

use super::*;
use serde_json::{Value, json};

fn node(name: &str, more: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "uid": "u", "labels": {
            "kubernetes.io/hostname": name, "zone": "a", "": "",
        }},
        "status": {
            "allocatable": {"cpu": "2", "hugepages-1Gi": "0", "example.com/a": "3"},
            "declaredFeatures": ["One", "Two"],
        },
    });
    for (pointer, value) in more.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = parent.split('/').filter(|part| !part.is_empty());
        let place = parent.fold(&mut node, |place, part| &mut place[part]);
        place[key] = value.clone();
    }
    serde_json::from_value(node).unwrap()
}

fn facts(common: &mut Common, name: &str) -> NodeFacts {
    common.facts(name.into(), &node(name, json!({})))
}

#[test]
fn labels_are_found_by_their_keys() {
    let facts = NodeFacts::of(&node("n", json!({})));
    let found = ["kubernetes.io/hostname", "zone", "", "zon", "zones"].map(|key| facts.label(key));
    assert_eq!(found, [Some("n"), Some("a"), Some(""), None, None]);
    assert_eq!(NodeFacts::default().label("zone"), None);
}

#[test]
fn what_nodes_have_in_common_is_kept_once() {
    let mut common = Common::default();
    let [one, other] = ["n", "m"].map(|name| facts(&mut common, name));
    assert!(Arc::ptr_eq(&one.labels.keys, &other.labels.keys));
    assert!(Arc::ptr_eq(
        &one.declared_features,
        &other.declared_features
    ));
    let [zone, its] = [&one, &other].map(|node| &node.labels.values[2]);
    assert!(Arc::ptr_eq(zone, its) && **zone == *"a");
    assert!(Arc::ptr_eq(&one.labels.values[1], &one.name));
    let scalar = |node: &NodeFacts| Arc::clone(&node.allocatable.scalars[0].0);
    assert!(Arc::ptr_eq(&scalar(&one), &scalar(&other)));
}

/// What a plugin or the queue looks at makes other facts; what nobody looks at does not.
#[test]
fn facts_differ_by_what_plugins_look_at() {
    let same =
        |more: Value| NodeFacts::of(&node("n", json!({}))) == NodeFacts::of(&node("n", more));
    for other in [
        json!({"/metadata/uid": "v"}),
        json!({"/metadata/labels/zone": "b"}),
        json!({"/metadata/labels/more": ""}),
        json!({"/metadata/annotations": {LOCAL_PATH_DIRECTORY: "/var"}}),
        json!({"/spec": {"unschedulable": true}}),
        json!({"/spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        json!({"/status/allocatable/cpu": "3"}),
        json!({"/status/allocatable/hugepages-2Mi": "0"}),
        json!({"/status/declaredFeatures": ["One"]}),
    ] {
        assert!(!same(other.clone()), "{other}");
    }
    for heartbeat in [
        json!({"/metadata/resourceVersion": "2"}),
        json!({"/metadata/annotations": {"other": "x", LOCAL_PATH_DIRECTORY: "relative"}}),
        json!({"/spec": {"podCIDR": "10.0.0.0/24", "unschedulable": false}}),
        json!({"/status/capacity": {"cpu": "9"}}),
        json!({"/status/conditions": [{"type": "Ready", "status": "True"}]}),
        json!({"/status/images": [{"names": ["i"]}]}),
    ] {
        assert!(same(heartbeat.clone()), "{heartbeat}");
    }
}
