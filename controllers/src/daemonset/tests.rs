//! A DaemonSet, nodes and pods in, the plan and the status out, as text.
//!
//! `ds [surge=N|N%] [unavailable=N|N%] [ondelete] [min_ready=S] [host] [template=N]`, then a line
//! for each node: `node NAME [zone=Z] [taint=KEY:EFFECT]`, and for each pod:
//! `pod NAME NODE [old] [template=N] [ready[=SECONDS]] [failed|succeeded] [deleting] [unbound]
//! [age=S]`. Pods are of the present revision and run unready on their node, if not told else.

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::plan::{Observed, by_node, plan};
use super::*;
use crate::fixture_text::*;

mod running;

fn set(words: &[&str]) -> DaemonSet {
    let unavailable = option(words, "surge").map_or("1", |_| "0");
    let mut value = json!({
        "metadata": {"name": "ds", "namespace": "default", "uid": "ds", "generation": 2},
        "spec": {
            "minReadySeconds": number(words, "min_ready").unwrap_or(0),
            "selector": {"matchLabels": {"app": "ds"}},
            "template": {
                "metadata": {"labels": {"app": "ds"}},
                "spec": {
                    "containers": [], "hostNetwork": option(words, "host").is_some(),
                    "nodeSelector": option(words, "zone").map(|zone| json!({"zone": zone})),
                    "nodeName": option(words, "on"),
                },
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxSurge": int_or_percent(words, "surge", "0"),
                "maxUnavailable": int_or_percent(words, "unavailable", unavailable),
            }},
        },
    });
    if option(words, "ondelete").is_some() {
        value["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    }
    if let Some(zones) = option(words, "zones") {
        let values: Vec<&str> = zones.split('/').collect();
        value["spec"]["template"]["spec"]["affinity"]["nodeAffinity"] = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]},
            ]},
        });
    }
    if let Some(key) = option(words, "bears") {
        value["spec"]["template"]["spec"]["tolerations"] =
            json!([{"key": key, "operator": "Exists", "effect": "NoSchedule"}]);
    }
    if let Some(number) = option(words, "template") {
        value["metadata"]["annotations"] = json!({spec::TEMPLATE_GENERATION: number});
    }
    serde_json::from_value(value).unwrap()
}

fn node(name: &str, words: &[&str]) -> Node {
    let taints: Vec<Value> = words
        .iter()
        .filter_map(|word| word.strip_prefix("taint=")?.split_once(':'))
        .map(|(key, effect)| json!({"key": key, "effect": effect}))
        .collect();
    let zone = option(words, "zone").unwrap_or("none");
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"zone": zone}}, "spec": {"taints": taints},
    }))
    .unwrap()
}

fn pod(name: &str, node: &str, words: &[&str]) -> Arc<Pod> {
    let phase = match words {
        words if words.contains(&"failed") => "Failed",
        words if words.contains(&"succeeded") => "Succeeded",
        _ => "Running",
    };
    let age = number(words, "age").unwrap_or(1000);
    let hash = if words.contains(&"old") { "h1" } else { "h2" };
    let mut pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "creationTimestamp": at(age),
            "labels": {"app": "ds", "controller-revision-hash": hash},
        },
        "spec": {"containers": []},
        "status": {"phase": phase},
    }))
    .unwrap();
    if words.contains(&"unbound") {
        placement::pin(&mut pod, node);
    } else {
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
    }
    let mut value = json!(pod);
    if let Some(number) = option(words, "template") {
        value["metadata"]["labels"][placement::GENERATION_LABEL] = json!(number);
    }
    if let Some(ready) = option(words, "ready") {
        let since = ready.parse().unwrap_or(age);
        value["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(since)}]);
    }
    if words.contains(&"deleting") {
        value["metadata"]["deletionTimestamp"] = json!(at(0));
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Reads the text, and lets the function see what the caches would show.
fn with<T>(text: &str, see: impl FnOnce(&Observed<'_>) -> T) -> T {
    let (mut owner, mut nodes, mut pods) = (set(&[]), Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["ds", options @ ..] => owner = set(options),
            ["node", name, options @ ..] => nodes.push(Arc::new(node(name, options))),
            ["pod", name, node, options @ ..] => pods.push(pod(name, node, options)),
            other => panic!("cannot read {other:?}"),
        }
    }
    let spec = Spec::of(&owner).unwrap();
    see(&Observed {
        set: &owner,
        spec: &spec,
        hash: "h2",
        nodes: &Requirements::of(spec.template).on_all(&nodes),
        pods: &by_node(&pods),
        now: now(),
    })
}

fn said(plan: &plan::Plan) -> String {
    let mut said = Vec::new();
    if !plan.create.is_empty() {
        said.push(format!("create {}", plan.create.join(" ")));
    }
    if !plan.delete.is_empty() {
        let names = plan.delete.iter().map(|pod| pod.metadata.name.as_deref());
        let names: Vec<&str> = names.map(Option::unwrap).collect();
        said.push(format!("delete {}", names.join(" ")));
    }
    for (event_type, reason, message) in &plan.tell {
        said.push(format!("{} {reason} {message}", event_type.as_str()));
    }
    if let Some(again) = plan.again {
        said.push(format!("again in {} s", again.as_secs()));
    }
    said.join(", ")
}

fn check(text: &str, expected: Expect) {
    let now = coracle_client::clock::Clock::system().monotonic();
    let plan = with(text, |observed| {
        plan(observed, &mut Backoff::default(), now)
    });
    expected.assert_eq(&said(&plan));
}

fn check_status(text: &str, expected: Expect) {
    let said = with(text, |observed| {
        let status = status::next(observed, true);
        let mut said = format!(
            "desired {} current {} misscheduled {} ready {}",
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.number_misscheduled,
            status.number_ready,
        );
        for (name, count) in [
            ("updated", status.updated_number_scheduled),
            ("available", status.number_available),
            ("unavailable", status.number_unavailable),
        ] {
            if let Some(count) = count {
                write!(said, " {name} {count}").unwrap();
            }
        }
        if let Some(check) = status::next_check(observed) {
            write!(said, ", again in {} s", check.as_secs()).unwrap();
        }
        said
    });
    expected.assert_eq(&said);
}

#[test]
fn every_node_gets_one() {
    check("node a\nnode b\npod p b", expect!["create a"]);
    check("node a\npod p a deleting", expect![""]);
    check(
        "node a
         pod young a age=5
         pod old a age=9
         pod waits a unbound age=99",
        expect!["delete young waits"],
    );
}

#[test]
fn selectors_names_and_affinity_choose_nodes() {
    let nodes = "\nnode a zone=x\nnode b zone=y\nnode c\npod p c";
    check(&format!("ds zone=x{nodes}"), expect!["create a, delete p"]);
    check(
        &format!("ds zones=x/y{nodes}"),
        expect!["create a b, delete p"],
    );
    check(&format!("ds on=b{nodes}"), expect!["create b, delete p"]);
}

#[test]
fn taints_keep_pods_away_but_those_of_trouble_do_not() {
    check(
        "node ready
         node lost taint=node.kubernetes.io/unreachable:NoExecute
         node cordoned taint=node.kubernetes.io/unschedulable:NoSchedule
         node offline taint=node.kubernetes.io/network-unavailable:NoSchedule
         node other taint=team:NoSchedule
         node soft taint=team:PreferNoSchedule",
        expect!["create cordoned lost ready soft"],
    );
    check(
        "ds host
         node offline taint=node.kubernetes.io/network-unavailable:NoSchedule",
        expect!["create offline"],
    );
    check(
        "ds bears=team\nnode a taint=team:NoSchedule",
        expect!["create a"],
    );
    // What is there stays, unless the taint drives it out.
    check("node a taint=team:NoSchedule\npod p a", expect![""]);
    check("node a taint=team:NoExecute\npod p a", expect!["delete p"]);
}

/// What the plan is so many seconds after the first, with one memory of failures.
fn in_a_row(text: &str) -> impl FnMut(u64) -> String {
    let mut backoff = Backoff::default();
    let start = coracle_client::clock::Clock::system().monotonic();
    move |seconds| {
        let now = start + Duration::from_secs(seconds);
        said(&with(text, |observed| plan(observed, &mut backoff, now)))
    }
}

#[test]
fn finished_pods_are_replaced_and_failed_ones_not_at_once() {
    check(
        "node a\npod p a succeeded",
        expect![
            "delete p, Normal SucceededDaemonPod Found succeeded daemon pod default/p on node a, will try to delete it"
        ],
    );
    let mut after = in_a_row("node a\npod p a failed");
    let killed = "delete p, Warning FailedDaemonPod Found failed daemon pod default/p on node a, will try to kill it";
    assert_eq!(after(0), killed);
    assert_eq!(after(0), "again in 1 s");
    assert_eq!(after(1), killed);
    assert_eq!(after(2), "again in 1 s");
    assert_eq!(after(3), killed);
    // In the end every quarter of an hour, and long after that as if nothing had been.
    let mut now = 3;
    for wait in [4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
        assert_eq!(after(now + 1), format!("again in {} s", wait - 1));
        assert_eq!(after(now + wait - 1), "again in 1 s");
        now += wait;
        assert_eq!(after(now), killed);
    }
    assert_eq!(after(now + 1801), killed);
    assert_eq!(after(now + 1801), "again in 1 s");
}

#[test]
fn what_is_told_of_is_deleted_in_the_same_pass() {
    let mut text = String::new();
    for number in 0..300 {
        writeln!(
            text,
            "node n{number:03}\npod p{number:03} n{number:03} failed"
        )
        .unwrap();
    }
    let now = coracle_client::clock::Clock::system().monotonic();
    let mut backoff = Backoff::default();
    let mut pass = |text: &str| with(text, |observed| plan(observed, &mut backoff, now));
    let first = pass(&text);
    assert_eq!((first.delete.len(), first.tell.len()), (250, 250));
    // The others wait for nothing but the pass.
    let left = text.split_inclusive("node ").skip(251).collect::<String>();
    let second = pass(&format!("node {}", left.trim_end_matches("node ")));
    assert_eq!((second.delete.len(), second.tell.len()), (50, 50));
}

#[test]
fn with_surge_too_a_failed_pod_is_waited_for() {
    let killed =
        "Warning FailedDaemonPod Found failed daemon pod default/p on node a, will try to kill it";
    let mut after = in_a_row("ds surge=1\nnode a\npod p a failed");
    assert_eq!(after(0), format!("create a, delete p, {killed}"));
    assert_eq!(after(0), "again in 1 s");
    assert_eq!(after(1), format!("create a, delete p, {killed}"));
    assert_eq!(after(1), "again in 2 s");
    // One that succeeded keeps nobody waiting.
    check(
        "ds surge=1\nnode a\npod p a succeeded",
        expect![
            "create a, delete p, Normal SucceededDaemonPod Found succeeded daemon pod default/p on node a, will try to delete it"
        ],
    );
}

#[test]
fn pods_that_wait_for_a_node_that_is_gone_are_removed() {
    check(
        "node a
         pod p a
         pod lost b unbound
         pod bound b",
        expect!["delete lost"],
    );
}

#[test]
fn an_update_takes_as_many_as_may_be_missing() {
    let pods = "\nnode a\nnode b\nnode c\nnode d
        pod a a old ready\npod b b old ready\npod c c old ready\npod d d old ready";
    check(&format!("ds{pods}"), expect!["delete a"]);
    check(&format!("ds unavailable=30%{pods}"), expect!["delete a b"]);
    check(&format!("ds unavailable=0{pods}"), expect!["delete a"]);
    check(&format!("ds ondelete{pods}"), expect![""]);
}

#[test]
fn what_does_not_serve_is_replaced_first() {
    check(
        "ds unavailable=2
         node a\nnode b\nnode c\nnode d
         pod a a old ready
         pod b b old
         pod c c ready
         pod d d old",
        expect!["delete b d"],
    );
    // The new one does not serve for long enough yet.
    check(
        "ds min_ready=30
         node a\nnode b
         pod a a ready=29
         pod b b old ready=99",
        expect![""],
    );
    check(
        "ds min_ready=30
         node a\nnode b
         pod a a ready=30
         pod b b old ready=99",
        expect!["delete b"],
    );
    // A pod that is going counts as missing.
    check(
        "node a\nnode b
         pod a a old ready deleting
         pod b b old ready",
        expect![""],
    );
}

#[test]
fn surge_puts_the_new_one_beside_the_old_one() {
    let nodes = "\nnode a\nnode b\nnode c";
    check(
        &format!("ds surge=1{nodes}\npod a a old ready\npod b b old ready\npod c c old ready"),
        expect!["create a"],
    );
    // The old one does not serve: its successor is not counted.
    check(
        &format!("ds surge=1{nodes}\npod a a old\npod b b old ready\npod c c old ready"),
        expect!["create a b"],
    );
    check(
        &format!("ds surge=1{nodes}\npod a a old ready\npod a2 a\npod b b old ready\npod c c"),
        expect![""],
    );
    check(
        &format!(
            "ds surge=1{nodes}\npod a a old ready\npod a2 a ready\npod b b old ready\npod c c"
        ),
        expect!["delete a"],
    );
    // Neither serves: the new one stays.
    check(
        "ds surge=1\nnode a\npod a a old\npod a2 a",
        expect!["delete a"],
    );
    check(
        "ds surge=1\nnode a\npod a a old ready\npod a2 a\npod a3 a age=5\npod a4 a old age=6",
        expect!["delete a4 a3"],
    );
    // One that is terminating is not waited for.
    check(
        "ds surge=1\nnode a\npod a a old deleting",
        expect!["create a"],
    );
}

#[test]
fn with_surge_a_pod_of_a_node_that_left_goes_when_it_is_not_needed() {
    let nodes = "ds surge=1\nnode a taint=team:NoSchedule\nnode b\npod a a old ready";
    check(&format!("{nodes}\npod b b"), expect![""]);
    check(&format!("{nodes}\npod b b ready"), expect!["delete a"]);
}

#[test]
fn the_status_counts() {
    check_status(
        "ds min_ready=30
         node a\nnode b\nnode c\nnode d\nnode e taint=team:NoSchedule
         pod a a old ready=99
         pod b b ready=10
         pod c c
         pod e e ready",
        expect![
            "desired 4 current 3 misscheduled 1 ready 2 updated 2 available 1 unavailable 3, again in 20 s"
        ],
    );
    check_status("", expect!["desired 0 current 0 misscheduled 0 ready 0"]);
    check_status(
        "node a\npod a a ready",
        expect!["desired 1 current 1 misscheduled 0 ready 1 updated 1 available 1"],
    );
}

/// From before there were revisions, or made by a controller that counts templates.
#[test]
fn a_pod_of_the_present_number_of_the_template_is_updated() {
    let pods = "\nnode a\nnode b\npod a a old ready template=3\npod b b old ready template=2";
    check(&format!("ds template=3{pods}"), expect!["delete b"]);
    check_status(
        &format!("ds template=3{pods}"),
        expect!["desired 2 current 2 misscheduled 0 ready 2 updated 1 available 2"],
    );
    // Two that do not say are not of the same.
    check("node a\npod a a old ready", expect!["delete a"]);
    let owner = set(&["template=3"]);
    let made = placement::template_for_pods(&Spec::of(&owner).unwrap(), "h2");
    let labels = made.metadata.unwrap().labels.unwrap();
    assert_eq!(labels[placement::GENERATION_LABEL], "3");
}

#[test]
fn a_pass_that_only_counted_has_not_seen_the_generation() {
    let seen = |processed| {
        with("node a", |observed| {
            status::next(observed, processed).observed_generation
        })
    };
    assert_eq!((seen(false), seen(true)), (None, Some(2)));
}

#[test]
fn a_pod_is_tied_to_its_node_and_bears_what_nodes_go_through() {
    let owner = set(&["host", "zones=x", "bears=node.kubernetes.io/disk-pressure"]);
    let spec = Spec::of(&owner).unwrap();
    let mut pod = crate::pod_control::pod_from(&owner, &placement::template_for_pods(&spec, "h2"));
    assert_eq!(placement::target(&pod), None);
    placement::pin(&mut pod, "a");
    assert_eq!(placement::target(&pod), Some("a"));
    let value = json!(pod);
    assert_eq!(
        value["metadata"]["labels"],
        json!({"app": "ds", "controller-revision-hash": "h2"})
    );
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    assert_eq!(
        value["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"],
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}])
    );
    let tolerations = value["spec"]["tolerations"].as_array().unwrap().iter();
    let said: Vec<String> = tolerations
        .map(|one| format!("{}:{}", one["key"], one["effect"]).replace('"', ""))
        .collect();
    expect![[r#"
        node.kubernetes.io/disk-pressure:NoSchedule
        node.kubernetes.io/not-ready:NoExecute
        node.kubernetes.io/unreachable:NoExecute
        node.kubernetes.io/memory-pressure:NoSchedule
        node.kubernetes.io/pid-pressure:NoSchedule
        node.kubernetes.io/unschedulable:NoSchedule
        node.kubernetes.io/network-unavailable:NoSchedule"#]]
    .assert_eq(&said.join("\n"));
}
