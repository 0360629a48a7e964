//! Upstream's scenarios: where a pod may go, and where it goes rather.

use super::*;
use crate::plugins::scene::{filter, filter_without, pod, score, world};
use crate::selector::of_map;
use coracle_client::ObjectKey;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const FOUR: &str = "
    node a zone=1 node=a kubernetes.io/hostname=a
    node b zone=1 node=b kubernetes.io/hostname=b
    node x zone=2 node=x kubernetes.io/hostname=x
    node y zone=2 node=y kubernetes.io/hostname=y
";

/// `a 2, x 1`: so many pods with the label `foo` on these nodes.
fn with(nodes: &str, pods: &str) -> Snapshot {
    let mut text = nodes.to_owned();
    for one in pods.split(',').filter(|one| !one.trim().is_empty()) {
        let words: Vec<&str> = one.split_whitespace().collect();
        let count = words[1].parse().unwrap();
        let rest = if words.len() > 2 {
            words[2..].join(" ")
        } else {
            "foo=".to_owned()
        };
        for number in 0..count {
            let tag = words.join("-");
            text.push_str(&format!("pod {tag}-{number} {} {rest}\n", words[0]));
        }
    }
    world(&text)
}

/// `KEY SKEW [soft]`, and further fields in JSON.
fn constraint(text: &str, more: Value) -> Value {
    let words: Vec<&str> = text.split_whitespace().collect();
    let action = if words.len() > 2 {
        "ScheduleAnyway"
    } else {
        "DoNotSchedule"
    };
    let skew: i32 = words[1].parse().unwrap();
    let mut made = json!({"topologyKey": words[0], "maxSkew": skew, "whenUnsatisfiable": action,
        "labelSelector": {"matchExpressions": [{"key": "foo", "operator": "Exists"}]}});
    for (key, value) in more.as_object().unwrap() {
        made[key] = value.clone();
    }
    made
}

fn spread(text: &str) -> Value {
    json!({"topologySpreadConstraints": text
        .split(',')
        .map(|one| constraint(one, json!({})))
        .collect::<Vec<_>>()})
}

fn plugin() -> PodTopologySpread {
    PodTopologySpread::new(Owners::default())
}

fn fits(world: &Snapshot, spec: Value, expected: Expect) {
    let said = filter(&plugin(), &pod("foo=", spec), world);
    let short = said
        .replace(REASON_NO_LABEL, "lacks a label")
        .replace(REASON, "is too full");
    expected.assert_eq(&short);
}

#[test]
fn one_constraint() {
    fits(
        &with(FOUR, ""),
        spread("zone 1"),
        expect!["a fits, b fits, x fits, y fits"],
    );
    let even = with(FOUR, "a 2, b 1, y 3");
    fits(
        &even,
        spread("zone 1"),
        expect!["a fits, b fits, x fits, y fits"],
    );
    let one_fits = expect!["a is too full, b is too full, x fits, y is too full"];
    fits(&even, spread("node 1"), one_fits);
    fits(
        &even,
        spread("node 2"),
        expect!["a is too full, b fits, x fits, y is too full"],
    );
    let lacking = expect!["a lacks a label!, b lacks a label!, x lacks a label!, y lacks a label!"];
    fits(&even, spread("rack 1"), lacking);
    let other = with(FOUR, "a 5 foo= ns=other, b 1 foo= going, y 1");
    fits(
        &other,
        spread("zone 1"),
        expect!["a fits, b fits, x is too full, y is too full"],
    );
    let soft = filter(&plugin(), &pod("foo=", spread("node 1 soft")), &even);
    assert_eq!(soft, "skipped");
}

#[test]
fn a_pod_that_does_not_count_itself_may_go_where_it_would_not() {
    let world = with(FOUR, "a 2, b 1, y 3");
    let said = filter(&plugin(), &pod("bar=", spread("node 1")), &world);
    let expected = expect!["a is too full, b fits, x fits, y is too full"];
    expected.assert_eq(&said.replace(REASON, "is too full"));
}

#[test]
fn a_node_without_the_label_takes_no_part() {
    let nodes = "node a zone=1\nnode b\nnode x zone=2\nnode y zone=2\n";
    let world = with(nodes, "a 1, b 3, x 1, y 1");
    let expected = expect!["a fits, b lacks a label!, x is too full, y is too full"];
    fits(&world, spread("zone 1"), expected);
}

#[test]
fn no_selector_counts_nobody() {
    let spec = json!({"topologySpreadConstraints":
        [constraint("node 1", json!({"labelSelector": null}))]});
    fits(
        &with(FOUR, "a 5"),
        spec,
        expect!["a fits, b fits, x fits, y fits"],
    );
}

#[test]
fn few_domains_count_as_if_there_were_empty_ones() {
    let domains = |count: i32| {
        let more = json!({"minDomains": count});
        json!({"topologySpreadConstraints": [constraint("node 2", more)]})
    };
    let nodes = "node a node=a\nnode b node=b\nnode c node=c\n";
    let world = with(nodes, "a 2, b 2, c 1");
    fits(
        &world,
        domains(4),
        expect!["a is too full, b is too full, c fits"],
    );
    fits(&world, domains(2), expect!["a fits, b fits, c fits"]);
}

#[test]
fn policies_say_which_nodes_count() {
    let spec = |affinity: &str, taints: &str| {
        let more = json!({"nodeAffinityPolicy": affinity, "nodeTaintsPolicy": taints});
        json!({"nodeSelector": {"kind": "good"},
            "topologySpreadConstraints": [constraint("node 1", more)]})
    };
    let nodes = "node a node=a kind=good\nnode b node=b kind=good\nnode c node=c\n\
        node d node=d kind=good taint=bad\n";
    let world = with(nodes, "a 1, b 2, d 0");
    let fitting = expect!["a is too full, b is too full, c fits, d fits"];
    fits(&world, spec("Honor", "Ignore"), fitting);
    let fitting = expect!["a fits, b is too full, c fits, d fits"];
    fits(&world, spec("Honor", "Honor"), fitting);
    let world = with(nodes, "a 1, b 2, d 1");
    fits(
        &world,
        spec("Ignore", "Ignore"),
        expect!["a is too full, b is too full, c fits, d is too full"],
    );
}

#[test]
fn several_constraints_must_all_hold() {
    let both = || spread("zone 1, node 1");
    let world = with(FOUR, "a 2, b 1, y 3");
    fits(
        &world,
        both(),
        expect!["a is too full, b is too full, x fits, y is too full"],
    );
    let world = with(FOUR, "a 2, b 1, y 4");
    let none = expect!["a is too full, b is too full, x is too full, y is too full"];
    fits(&world, both(), none);
}

#[test]
fn label_keys_narrow_the_selector() {
    let keys = |keys: &[&str], selector: Value| {
        let more = json!({"matchLabelKeys": keys, "labelSelector": selector});
        json!({"topologySpreadConstraints": [constraint("node 1", more)]})
    };
    let world = with(FOUR, "a 1 foo= v=1, b 1 foo= v=2");
    let exists = json!({"matchExpressions": [{"key": "foo", "operator": "Exists"}]});
    let said = |spec| filter(&plugin(), &pod("foo= v=1", spec), &world).replace(REASON, "full");
    let fitting = "a full, b fits, x fits, y fits";
    assert_eq!(said(keys(&["v", "none"], exists)), fitting);
    assert_eq!(said(keys(&["v"], json!({}))), fitting);
    assert_eq!(
        said(keys(&["v"], Value::Null)),
        "a fits, b fits, x fits, y fits"
    );
}

#[test]
fn pods_that_go_make_room() {
    let world = with(FOUR, "a 2, b 1, x 1, y 3");
    let new = pod("foo=", spread("node 1"));
    let said =
        |gone: &[&str]| filter_without(&plugin(), &new, &world, gone).replace(REASON, "full");
    assert_eq!(said(&["a-2-0"]), "a fits, b fits, x fits, y full");
    assert_eq!(said(&["x-1-0"]), "a full, b full, x fits, y full");
    assert_eq!(said(&["y-3-0", "y-3-1"]), "a full, b fits, x fits, y fits");
}

fn scored(world: &Snapshot, spec: Value, names: &[&str]) -> String {
    score(&plugin(), &pod("foo= bar=", spec), world, names)
}

#[test]
fn fewer_like_pods_score_higher() {
    let even = with(FOUR, "a 1, b 1, x 1, y 1");
    let host = |skew: i32| spread(&format!("{HOSTNAME} {skew} soft"));
    assert_eq!(scored(&even, host(1), &[]), "a=100 b=100 x=100 y=100");
    let world = with(FOUR, "a 2, b 1, y 3");
    assert_eq!(scored(&world, host(1), &[]), "a=20 b=60 x=100 y=0");
    assert_eq!(scored(&world, host(2), &[]), "a=33 b=66 x=100 y=16");
    assert_eq!(scored(&world, spread("node 1"), &[]), "skipped");
    let world = with(FOUR, "a 4, b 3, x 2, y 1");
    assert_eq!(scored(&world, host(3), &[]), "a=44 b=66 x=77 y=100");
    let world = with(FOUR, "a 4, b 2, x 1, y 3");
    assert_eq!(scored(&world, host(1), &["a", "b", "x"]), "a=33 b=83 x=100");
    assert_eq!(
        scored(&world, spread("zone 1 soft"), &["a", "b", "x"]),
        "a=75 b=75 x=100"
    );
}

#[test]
fn nodes_without_a_key_are_left_out_and_topologies_add_up() {
    let host = spread(&format!("{HOSTNAME} 1 soft"));
    let nodes = FOUR.replace(
        "node b zone=1 node=b kubernetes.io/hostname=b",
        "node b n=b",
    );
    let world = with(&nodes, "a 4, b 2, x 1, y 3");
    assert_eq!(scored(&world, host, &["a", "b", "x"]), "a=16 b=0 x=100");
    let both = spread(&format!("zone 1 soft, {HOSTNAME} 1 soft"));
    let world = with(FOUR, "a 2, b 1, x 2, y 4");
    assert_eq!(scored(&world, both, &["a", "x"]), "a=100 x=63");
    let bar = json!({"matchLabels": {"bar": ""}});
    let two = json!({"topologySpreadConstraints": [constraint("zone 1 soft", json!({})),
        constraint(&format!("{HOSTNAME} 1 soft"), json!({"labelSelector": bar}))]});
    let world = with(FOUR, "a 1 foo=, b 1 foo= bar=, y 1 foo=, y 1 bar=");
    assert_eq!(scored(&world, two, &[]), "a=60 b=20 x=100 y=60");
}

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[test]
fn pods_of_a_service_are_spread_by_default() {
    let owners = Owners::default();
    let plugin = PodTopologySpread::new(owners.clone());
    let nodes = FOUR.replace("zone=", "other=");
    let world = with(&nodes, "a 4, b 3, x 2, y 1");
    let new = pod("foo=", json!({}));
    assert_eq!(score(&plugin, &new, &world, &[]), "skipped");
    owners
        .services
        .set(ObjectKey::new("default", "it"), map("foo", ""));
    owners
        .services
        .set(ObjectKey::new("default", "other"), map("foo", "other"));
    owners
        .services
        .set(ObjectKey::new("far", "far"), map("foo", ""));
    assert_eq!(score(&plugin, &new, &world, &[]), "a=44 b=66 x=77 y=100");
    assert_eq!(
        filter(&plugin, &new, &world),
        "skipped",
        "the defaults are soft"
    );
}

#[test]
fn pods_of_a_workload_are_spread_by_default() {
    let owners = Owners::default();
    let hard = TopologySpreadConstraint {
        topology_key: "node".to_owned(),
        when_unsatisfiable: "DoNotSchedule".to_owned(),
        max_skew: 1,
        ..TopologySpreadConstraint::default()
    };
    let plugin = PodTopologySpread::with_defaults(owners.clone(), &[hard]);
    let world = with(FOUR, "a 1, b 1 foo= v=2");
    let owned = |kind: &str, version: &str| {
        let mut meta = pod("foo= v=2", json!({})).waiting.unwrap().as_ref().clone();
        meta.metadata.owner_references =
            Some(vec![serde_json::from_value(json!({
            "apiVersion": version, "kind": kind, "name": "it", "uid": "it", "controller": true,
        }))
        .unwrap()]);
        PodInfo::new(Arc::new(meta))
    };
    let said = |pod: &PodInfo| filter(&plugin, pod, &world).replace(REASON, "full");
    let set = owned("ReplicaSet", "apps/v1");
    assert_eq!(said(&set), "skipped");
    let key = ObjectKey::new("default", "it");
    owners
        .replica_sets
        .set(key.clone(), Arc::new(of_map(&map("v", "2"))));
    assert_eq!(said(&set), "a fits, b full, x fits, y fits");
    assert_eq!(said(&owned("StatefulSet", "apps/v1")), "skipped");
    owners.replication_controllers.set(key, map("foo", ""));
    let controller = owned("ReplicationController", "v1");
    assert_eq!(said(&controller), "a full, b full, x fits, y fits");
    let own = pod("foo=", spread("node 3"));
    assert_eq!(
        said(&own),
        "a fits, b fits, x fits, y fits",
        "own constraints come first"
    );
}

fn placed(words: &str) -> Arc<PodInfo> {
    Arc::new(pod(words, json!({"nodeName": "a"})))
}

#[test]
fn only_what_changes_the_counts_wakes() {
    let (plugin, new) = (plugin(), pod("foo=", spread("zone 1")));
    let helps = |change: &WorldChange| plugin.can_help(change, &new);
    assert!(helps(&WorldChange::PodGone(placed("foo="))));
    assert!(helps(&WorldChange::PodPlaced(placed("foo="))));
    assert!(!helps(&WorldChange::PodGone(placed("bar="))));
    assert!(!helps(&WorldChange::PodGone(placed("foo= ns=other"))));
    let updated = |old, new| WorldChange::PodUpdated {
        old: placed(old),
        new: placed(new),
    };
    assert!(helps(&updated("foo=", "bar=")) && !helps(&updated("bar=", "baz=")));
    let node = |line: &str| world(line).nodes[0].facts.clone();
    assert!(helps(&WorldChange::NodeAdded(node("node a zone=1"))));
    assert!(!helps(&WorldChange::NodeAdded(node("node a"))));
    assert!(helps(&WorldChange::NodeRemoved(node("node a zone=1"))));
    let updated = |old, new| WorldChange::NodeUpdated {
        old: node(old),
        new: node(new),
    };
    assert!(helps(&updated("node a zone=1", "node a zone=2")));
    assert!(helps(&updated("node a zone=1", "node a")));
    assert!(helps(&updated("node a zone=1", "node a zone=1 taint=k")));
    let other = updated("node a zone=1", "node a zone=1 other=1");
    assert!(!helps(&other));
    let mut picky = spread("zone 1");
    picky["nodeSelector"] = json!({"other": "1"});
    assert!(
        plugin.can_help(&other, &pod("foo=", picky)),
        "it counts now"
    );
}
