//! Upstream's scenarios of the queue: a plugin refused the pod, something changes; is it tried again?
//!
//! A change is `+ node ...` and `+ pod ...` for what comes, `- ...` for what goes, `node ... => node
//! ...` and `pod ... => pod ...` for what becomes of another. Those of volumes are with their plugins.

use super::{Scene, pod, profile};
use crate::framework::WorldChange;
use crate::node_facts::NodeFacts;
use std::sync::Arc;

fn node(line: &str) -> Arc<NodeFacts> {
    NodeFacts::of(&super::node(line))
}

fn change(text: &str) -> WorldChange {
    if text == "itself" {
        return WorldChange::Itself;
    }
    if let Some((old, new)) = text.split_once(" => ") {
        return match old.starts_with("node") {
            true => WorldChange::NodeUpdated {
                old: node(old),
                new: node(new),
            },
            false => WorldChange::PodUpdated {
                old: Arc::new(pod(old)),
                new: Arc::new(pod(new)),
            },
        };
    }
    let (sign, what) = text.split_once(' ').unwrap();
    match (sign, what.starts_with("node")) {
        ("+", true) => WorldChange::NodeAdded(node(what)),
        ("-", true) => WorldChange::NodeRemoved(node(what)),
        ("+", false) => WorldChange::PodPlaced(Arc::new(pod(what))),
        _ => WorldChange::PodGone(Arc::new(pod(what))),
    }
}

fn wakes(plugin: &str, waits: &str, text: &str) -> bool {
    let scene = Scene::of(&format!("waits {waits}"));
    let profile = profile(&scene.views);
    let mut plugins = profile.plugins();
    let plugin = plugins.find(|one| one.name() == plugin).unwrap();
    plugin.can_help(&change(text), &scene.waits)
}

#[track_caller]
fn check(plugin: &str, waits: &str, waking: &[&str], others: &[&str]) {
    for text in waking {
        assert!(wakes(plugin, waits, text), "{text} wakes {waits}");
    }
    for text in others {
        assert!(!wakes(plugin, waits, text), "{text} does not wake {waits}");
    }
}

const TAINT: &str = "{taints: [{key: k, effect: NoSchedule}]}";

#[test]
fn taints() {
    let bears = "{tolerations: [{key: k, operator: Exists}]}";
    let other = "{taints: [{key: l, effect: NoSchedule}]}";
    check(
        "TaintToleration",
        bears,
        &[
            "itself",
            &format!("+ node a {TAINT}"),
            &format!("node a {other} => node a {TAINT}"),
            &format!("node a {other} => node a"),
        ],
        &[
            &format!("+ node a {other}"),
            &format!("node a {TAINT} => node a {other}"),
            "- pod p on=a",
        ],
    );
}

#[test]
fn labels_of_nodes() {
    check(
        "NodeAffinity",
        "{on: [group In a]}",
        &["+ node n group=a", "node n group=b => node n group=a"],
        &[
            "+ node n group=b",
            "node n group=b => node n group=c",
            "node n group=a => node n group=a more=1",
        ],
    );
}

#[test]
fn cordons() {
    check(
        "NodeUnschedulable",
        "",
        &["+ node a", "node a {unschedulable: true} => node a"],
        &[
            "+ node a {unschedulable: true}",
            "node a => node a {unschedulable: true}",
        ],
    );
}

#[test]
fn room() {
    let asks =
        |cpu: u8| format!("{{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}");
    let has = |cpu: u8, pods: u8| {
        format!("node a {{status: {{allocatable: {{cpu: {cpu}, pods: {pods}}}}}}}")
    };
    let update = |old: &str, new: &str| format!("{old} => {new}");
    check(
        "NodeResourcesFit",
        &asks(3),
        &[
            "itself",
            &format!("- pod p on=a {}", asks(1)),
            &format!("pod p on=a {} => pod p on=a {}", asks(2), asks(1)),
            &format!("+ {}", has(4, 9)),
            &update(&has(2, 9), &has(4, 9)),
            &update(&has(4, 1), &has(4, 2)),
        ],
        &[
            &format!("+ {}", has(2, 9)),
            &format!("pod p on=a {} => pod p on=a {}", asks(1), asks(2)),
            &format!("pod p on=a {} => pod p on=a x=1 {}", asks(1), asks(1)),
            &update(&has(1, 9), &has(2, 9)),
            &update(&has(4, 9), &format!("{} ", has(4, 9))),
        ],
    );
}

#[test]
fn ports_of_machines() {
    let ports = |port: u16| {
        format!("{{containers: [{{name: c, ports: [{{containerPort: 80, hostPort: {port}}}]}}]}}")
    };
    check(
        "NodePorts",
        &ports(8080),
        &[&format!("- pod p on=a {}", ports(8080)), "+ node a"],
        &[&format!("- pod p on=a {}", ports(8081)), "- pod p on=a"],
    );
}

#[test]
fn pods_that_are_wanted_or_disliked() {
    check(
        "InterPodAffinity",
        "{near: ['app In a by zone']}",
        &[
            "+ pod p on=n app=a",
            "pod p on=n app=b => pod p on=n app=a",
            "+ node n zone=1",
            "node n => node n zone=1",
            "node n zone=1 => node n zone=2",
        ],
        &[
            "+ pod p on=n app=b",
            "- pod p on=n app=a",
            "pod p on=n app=a => pod p on=n app=b",
            "+ node n",
        ],
    );
    check(
        "InterPodAffinity",
        "app=b {far: ['app In a by zone']}",
        &[
            "- pod p on=n app=a",
            "- pod p on=n {far: ['app In b by zone']}",
            "pod p on=n app=a => pod p on=n app=c",
            "+ node n zone=1",
            "node n zone=1 => node n zone=2",
        ],
        &["- pod p on=n app=c", "+ pod p on=n app=a"],
    );
}

#[test]
fn domains_and_those_who_are_counted() {
    check(
        "PodTopologySpread",
        "app= {spread: [1 zone app]}",
        &[
            "+ pod p on=n app=",
            "- pod p on=n app=",
            "pod p on=n => pod p on=n app=",
            "+ node n zone=1",
            "node n => node n zone=1",
            "node n zone=1 => node n zone=2",
            "- node n zone=1",
            &format!("node n zone=1 {TAINT} => node n zone=1"),
        ],
        &[
            "+ pod p on=n",
            "- pod p on=n",
            "pod p on=n => pod p on=n other=",
            "+ node n",
            "- node n",
            "node n zone=1 => node n zone=1 other=1",
        ],
    );
}

#[test]
fn features_that_nodes_declare() {
    let has = |feature: &str| format!("node a {{status: {{declaredFeatures: [{feature}]}}}}");
    check(
        "NodeDeclaredFeatures",
        "{hostNetwork: true, hostUsers: false}",
        &[
            &format!("node a => {}", has("UserNamespacesHostNetworkSupport")),
            "+ node a",
        ],
        &[
            &format!("{} => {} ", has("Else"), has("Else")),
            "- pod p on=a",
        ],
    );
}
