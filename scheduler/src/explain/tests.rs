use super::*;
use crate::framework::SharedPlugin;
use crate::plugins::default_preemption::DefaultPreemption;
use crate::plugins::scene::{pod, world};
use crate::plugins::{node_affinity, node_name, node_ports};
use crate::plugins::{scheduling_gates, taint_toleration};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::sync::Arc;

fn profile() -> Profile {
    let plugins: Vec<(SharedPlugin, i64)> = vec![
        (Arc::new(scheduling_gates::SchedulingGates), 0),
        (Arc::new(node_name::NodeName), 0),
        (Arc::new(taint_toleration::TaintToleration), 3),
        (Arc::new(node_affinity::NodeAffinity::default()), 2),
        (Arc::new(node_ports::NodePorts), 0),
        (Arc::new(DefaultPreemption::default()), 0),
    ];
    Profile::new("default-scheduler", plugins)
}

fn check(nodes: &str, spec: Value, expected: Expect) {
    let told = explain(&profile(), &world(nodes), &pod("", spec));
    let mut lines: Vec<String> = told.nodes.iter().map(line).collect();
    lines.push(format!("best: {}", told.best().join(" ")));
    lines.extend(told.message);
    lines.extend(told.preempts.map(|plan| {
        let victims = plan.victims.join(" ");
        format!("{victims} would have to go from {}", plan.node)
    }));
    lines.extend(told.gated_by.map(|plugin| format!("gated by {plugin}")));
    expected.assert_eq(&lines.join("\n"));
}

fn line(one: &NodeVerdict) -> String {
    match &one.verdict {
        Verdict::Fits(scores) => {
            let parts: Vec<String> = scores
                .iter()
                .map(|one| format!("{}={}x{}", one.plugin, one.weight, one.score))
                .collect();
            format!("{} {}: {}", one.node, one.total().unwrap(), parts.join(" "))
        }
        Verdict::Refused(by) => format!("{} {by:?}", one.node),
    }
}

#[test]
fn every_filter_and_every_score_is_told() {
    let preferred = json!({ "affinity": { "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 5, "preference": {
            "matchExpressions": [{ "key": "disk", "operator": "In", "values": ["ssd"] }] } }],
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }] },
    } } });
    check(
        "node a disk=hdd
         node b disk=ssd
         node c taint=k",
        preferred,
        expect![[r#"
            b 500: TaintToleration=3x100 NodeAffinity=2x100
            a 300: TaintToleration=3x100 NodeAffinity=2x0
            c [("TaintToleration", ["node(s) had untolerated taint(s)"]), ("NodeAffinity", ["node(s) didn't match Pod's node affinity/selector"])]
            best: b"#]],
    );
}

#[test]
fn equals_are_left_to_chance_and_the_only_one_is_scored() {
    check(
        "node a\nnode b",
        json!({}),
        expect![[r#"
            a 300: TaintToleration=3x100
            b 300: TaintToleration=3x100
            best: a b"#]],
    );
    check(
        "node a",
        json!({}),
        expect![[r#"
        a 300: TaintToleration=3x100
        best: a"#]],
    );
}

#[test]
fn what_the_pods_event_says_is_told_where_nothing_fits() {
    check(
        "node a taint=k",
        json!({ "schedulingGates": [{ "name": "quota" }] }),
        expect![[r#"
            a [("TaintToleration", ["node(s) had untolerated taint(s)"])]
            best: 
            0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
            gated by SchedulingGates"#]],
    );
    check(
        "",
        json!({}),
        expect![[r#"
        best: 
        no nodes available to schedule pods"#]],
    );
}

#[test]
fn who_would_have_to_go_is_told() {
    let port = json!([{ "name": "c", "ports": [{ "containerPort": 80, "hostPort": 80 }] }]);
    check(
        &format!("node a\npod low a {{\"containers\": {port}, \"priority\": 1}}"),
        json!({ "containers": port, "priority": 5 }),
        expect![[r#"
            a [("NodePorts", ["node(s) didn't have free ports for the requested pod ports"])]
            best: 
            0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.
            default/low would have to go from a"#]],
    );
}
