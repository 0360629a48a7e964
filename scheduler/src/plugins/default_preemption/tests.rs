//! World and pod in; victims and node, or what users read, out.

use super::*;
use crate::cache::{Cache, Snapshot};
use crate::cycle::{self, Outcome, Rotation};
use crate::framework::{Profile, SharedPlugin};
use crate::plugins::node_affinity::NodeAffinity;
use crate::plugins::node_ports::NodePorts;
use crate::plugins::node_resources_fit::NodeResourcesFit;
use crate::plugins::node_unschedulable::NodeUnschedulable;
use crate::plugins::taint_toleration::TaintToleration;
use expect_test::{Expect, expect};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

pub(super) fn profile() -> Profile {
    let plugins: Vec<SharedPlugin> = vec![
        Arc::new(NodeUnschedulable),
        Arc::new(TaintToleration),
        Arc::new(NodeAffinity::default()),
        Arc::new(NodePorts),
        Arc::new(NodeResourcesFit::default()),
        Arc::new(DefaultPreemption::default()),
    ];
    let plugins = plugins.into_iter().map(|plugin| (plugin, 1)).collect();
    Profile::new("default-scheduler", plugins)
}

const HOSTNAME: &str = "kubernetes.io/hostname";

/// A line of a world: `node NAME [cpu=N] [cordoned] [taint=KEY]`,
/// `pod NAME on=NODE [priority=N] [cpu=N] [port=N] [app=X] [started=SECONDS] [ending]`,
/// `waits NAME nominated=NODE [priority=N] [cpu=N]` or
/// `budget NAME app=X allowed=N [disrupted=POD]`.
fn world(text: &str) -> Cache {
    let mut cache = Cache::default();
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (what, name) = (words.next().unwrap(), words.next().unwrap());
        let words: Vec<&str> = words.collect();
        match what {
            "node" => drop(cache.set_node(&from(node(name, &words)))),
            "pod" => drop(cache.set_pod(info(name, &words))),
            "waits" => assert!(!cache.set_nominated(&info(name, &words))),
            "budget" => cache.set_budget(&from(budget(name, &words))),
            other => panic!("what is {other}?"),
        }
    }
    cache
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node(name: &str, words: &[&str]) -> Value {
    let mut node = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": {},
        "status": { "allocatable": { "cpu": "2", "pods": "10" } },
    });
    for word in words {
        match word.split_once('=') {
            Some(("cpu", cpu)) => node["status"]["allocatable"]["cpu"] = cpu.into(),
            Some(("taint", key)) => {
                node["spec"]["taints"] = json!([{ "key": key, "effect": "NoSchedule" }]);
            }
            _ => node["spec"]["unschedulable"] = true.into(),
        }
    }
    node
}

fn info(name: &str, words: &[&str]) -> Arc<PodInfo> {
    let mut container = json!({ "name": "c", "resources": { "requests": {} } });
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name, "labels": {} },
        "spec": {},
        "status": { "phase": "Running" },
    });
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "on" => pod["spec"]["nodeName"] = value.into(),
            "only" => pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": value }),
            "priority" => pod["spec"]["priority"] = value.parse::<i32>().unwrap().into(),
            "never" => pod["spec"]["preemptionPolicy"] = "Never".into(),
            "cpu" => container["resources"]["requests"]["cpu"] = value.into(),
            "port" => {
                let port: i32 = value.parse().unwrap();
                container["ports"] = json!([{ "containerPort": port, "hostPort": port }]);
            }
            "app" => pod["metadata"]["labels"]["app"] = value.into(),
            "spread" => {
                pod["spec"]["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": { "matchLabels": { "app": value } },
                }]);
            }
            "apart" => {
                let selector = json!({ "matchLabels": { "app": value } });
                pod["spec"]["affinity"]["podAntiAffinity"] = json!({
                    "requiredDuringSchedulingIgnoredDuringExecution":
                        [{ "topologyKey": HOSTNAME, "labelSelector": selector }],
                });
            }
            "started" => {
                pod["status"]["startTime"] = format!("2026-01-01T00:00:{value}Z").into();
            }
            "nominated" => pod["status"]["nominatedNodeName"] = value.into(),
            "ending" => {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
                let condition = json!({ "type": "DisruptionTarget", "status": "True",
                                        "reason": "PreemptionByScheduler" });
                pod["status"]["conditions"] = json!([condition]);
            }
            other => panic!("what is {other}?"),
        }
    }
    pod["spec"]["containers"] = json!([container]);
    Arc::new(PodInfo::new(Arc::new(from(pod))))
}

fn budget(name: &str, words: &[&str]) -> Value {
    let mut budget = json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": {},
        "status": { "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
                    "disruptionsAllowed": 0 },
    });
    for word in words {
        match word.split_once('=').unwrap() {
            ("app", app) => budget["spec"]["selector"] = json!({ "matchLabels": { "app": app } }),
            ("allowed", many) => {
                budget["status"]["disruptionsAllowed"] = many.parse::<i32>().unwrap().into();
            }
            (_, pod) => {
                budget["status"]["disruptedPods"] = json!({ pod: "2026-01-01T00:00:00Z" });
            }
        }
    }
    budget
}

fn names(pods: &[Arc<PodInfo>]) -> String {
    let names: Vec<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
    names.join(" ")
}

fn decide(cache: &mut Cache, pod: &Arc<PodInfo>, offset: usize) -> Outcome {
    decide_from(Rotation::default(), cache, pod, offset)
}

fn decide_from(
    mut rotation: Rotation,
    cache: &mut Cache,
    pod: &Arc<PodInfo>,
    offset: usize,
) -> Outcome {
    cache.set_nominated(pod);
    let mut snapshot = Snapshot::default();
    cache.update(&mut snapshot);
    cycle::run(&profile(), &snapshot, pod, &mut rotation, |many| {
        offset % many
    })
}

fn told(outcome: &Outcome, pod: &PodInfo) -> String {
    match outcome {
        Outcome::Node(node) => format!("fits {node}"),
        Outcome::NoFit(diagnosis) => match &diagnosis.remedy().preemption {
            Some(plan) => {
                assert_eq!(
                    diagnosis.remedy().nomination,
                    Nomination::Node(Arc::clone(&plan.node))
                );
                format!("{} without {}", plan.node, names(&plan.victims))
            }
            None => format!(
                "{} ({:?})",
                diagnosis.message(pod),
                diagnosis.remedy().nomination
            ),
        },
        Outcome::Failed(why) => why.clone(),
    }
}

fn check(text: &str, pod: &str, expected: Expect) {
    let pod = info("new", &pod.split_whitespace().collect::<Vec<_>>());
    let outcome = decide(&mut world(text), &pod, 0);
    expected.assert_eq(&told(&outcome, &pod));
}

#[test]
fn a_pod_of_lower_priority_makes_room() {
    let full = "node a
                pod low on=a priority=1 cpu=2";
    check(full, "priority=2 cpu=1", expect!["a without low"]);
    check(
        full,
        "priority=1 cpu=1",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod. (Clear)"
        ],
    );
    check("node a", "priority=1 cpu=1", expect!["fits a"]);
    check(
        "",
        "priority=1",
        expect!["no nodes available to schedule pods (Clear)"],
    );
}

#[test]
fn nodes_on_which_it_does_not_help_are_counted() {
    check(
        "node a cordoned
         node b taint=k
         node c cpu=1
         node d
         pod equal on=d priority=5 cpu=2
         node e
         pod even on=e priority=5 cpu=1
         pod low on=e cpu=1",
        "priority=5 cpu=2",
        expect![
            "0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 3 Insufficient cpu. preemption: 0/5 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling. (Clear)"
        ],
    );
}

#[test]
fn who_need_not_go_is_spared_by_priority_then_by_age() {
    check(
        "node a cpu=4
         pod four on=a priority=4 cpu=1
         pod one on=a priority=1 cpu=1
         pod young on=a priority=2 cpu=1 started=20
         pod old on=a priority=2 cpu=1 started=10",
        "priority=9 cpu=2",
        expect!["a without young one"],
    );
    // The least important is spared where it is of no use.
    check(
        "node a cpu=4
         pod small on=a priority=1 cpu=1
         pod large on=a priority=2 cpu=3",
        "priority=9 cpu=3",
        expect!["a without large"],
    );
    check(
        "node a
         pod web on=a priority=1 port=80
         pod other on=a priority=0 port=81",
        "priority=9 port=80",
        expect!["a without web"],
    );
}

#[test]
fn budgets_are_spared_first() {
    let two = "node a
               pod kept on=a priority=1 cpu=1 app=x
               pod free on=a priority=2 cpu=1 app=y";
    check(two, "priority=9 cpu=1", expect!["a without kept"]);
    let with_budget = |budget: &str| format!("{two}\nbudget b {budget}");
    let spares = |budget, expected| check(&with_budget(budget), "priority=9 cpu=1", expected);
    spares("app=x allowed=0", expect!["a without free"]);
    spares("app=x allowed=1", expect!["a without kept"]);
    spares("app=x allowed=0 disrupted=kept", expect!["a without kept"]);
    spares("allowed=0", expect!["a without kept"]);
    // Where it cannot be helped, the budget gives way.
    check(
        &with_budget("app=x allowed=0"),
        "priority=9 cpu=2",
        expect!["a without free kept"],
    );
    // What is allowed is spent on the most important ones.
    check(
        "node a cpu=3
         pod p3 on=a priority=3 cpu=1 app=x
         pod p2 on=a priority=2 cpu=1 app=x
         pod p1 on=a priority=1 cpu=1 app=x
         budget b app=x allowed=1",
        "priority=9 cpu=1",
        expect!["a without p3"],
    );
}

#[test]
fn the_node_with_the_least_harm_is_chosen() {
    let choose = |a: &str, b: &str, expected: Expect| {
        let text = format!("node a\nnode b\n{a}\n{b}\nbudget z app=z allowed=0");
        check(&text, "priority=9 cpu=2", expected);
    };
    choose(
        "pod a1 on=a priority=1 cpu=2 app=z",
        "pod b1 on=b priority=8 cpu=2",
        expect!["b without b1"],
    );
    choose(
        "pod a1 on=a priority=2 cpu=2",
        "pod b1 on=b priority=1 cpu=1\npod b2 on=b priority=1 cpu=1",
        expect!["b without b1 b2"],
    );
    choose(
        "pod a1 on=a priority=2 cpu=1\npod a2 on=a priority=1 cpu=1",
        "pod b1 on=b priority=2 cpu=1\npod b2 on=b priority=0 cpu=1",
        expect!["b without b1 b2"],
    );
    choose(
        "pod a1 on=a priority=-2 cpu=1\npod a2 on=a priority=-2 cpu=1",
        "pod b1 on=b priority=-2 cpu=2",
        expect!["b without b1"],
    );
    choose(
        "pod a1 on=a priority=1 cpu=2 started=10",
        "pod b1 on=b priority=1 cpu=2 started=20",
        expect!["b without b1"],
    );
    choose(
        "pod a1 on=a priority=1 cpu=2 started=10",
        "pod b1 on=b priority=1 cpu=2 started=10",
        expect!["a without a1"],
    );
}

#[test]
fn who_may_not_end_others_says_so() {
    check(
        "node a
         pod low on=a priority=1 cpu=2",
        "priority=2 cpu=1 never",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never. (Keep)"
        ],
    );
    check(
        "node a
         node b
         pod low on=a priority=1 cpu=2 ending
         pod lower on=b priority=0 cpu=2",
        "priority=2 cpu=1 nominated=a",
        expect![
            "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node. (Keep)"
        ],
    );
    // Nobody is waited for on a node that does not do any more.
    check(
        "node a cordoned
         node b
         pod low on=a priority=1 cpu=2 ending
         pod lower on=b priority=0 cpu=2",
        "priority=2 cpu=1 nominated=a",
        expect!["b without lower"],
    );
}

#[test]
fn the_promised_node_is_known_wherever_the_look_at_nodes_began() {
    for place in 0..3 {
        let mut cache = world(
            "node a
             node b
             node c
             pod low on=a priority=1 cpu=2 ending
             pod lower on=b priority=0 cpu=2
             pod lowest on=c priority=0 cpu=2",
        );
        let pod = info("new", &["priority=2", "cpu=1", "nominated=a"]);
        let outcome = decide_from(Rotation::at(place), &mut cache, &pod, 0);
        let told = told(&outcome, &pod);
        assert!(
            told.contains("a terminating pod on the nominated node"),
            "{place}: {told}"
        );
    }
}

#[test]
fn room_that_was_promised_is_not_given_to_the_less_important() {
    let promised = "node a
                    waits high nominated=a priority=9 cpu=2";
    check(promised, "priority=10 cpu=1", expect!["fits a"]);
    check(
        promised,
        "priority=9 cpu=1",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod. (Clear)"
        ],
    );
    // Nor in the dry run: the victim is not enough for both.
    check(
        "node a cpu=3
         pod low on=a priority=1 cpu=1
         waits high nominated=a priority=9 cpu=2",
        "priority=5 cpu=2",
        expect![
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Insufficient cpu. (Clear)"
        ],
    );
}

#[test]
fn the_promised_node_is_tried_first() {
    let two = "node a
               node b cpu=8";
    check(two, "cpu=1", expect!["fits b"]);
    check(two, "cpu=1 nominated=a", expect!["fits a"]);
    check(two, "cpu=4 nominated=a", expect!["fits b"]);
    check(two, "cpu=1 nominated=gone", expect!["fits b"]);
}

#[test]
fn some_candidates_are_enough() {
    assert_eq!(
        [1, 100, 101, 1000, 5000].map(|nodes| enough(Args::default(), nodes)),
        [1, 100, 100, 100, 500]
    );
    let mut cache = Cache::default();
    for place in 0..300 {
        let name = format!("n{place:03}");
        cache.set_node(&Arc::new(from(node(&name, &[]))));
        let priority = format!("priority={}", if place == 299 { 0 } else { 1 });
        let on = format!("on={name}");
        cache.set_pod(info(&format!("p{place}"), &[&on, &priority, "cpu=2"]));
    }
    let pod = info("new", &["priority=2", "cpu=1"]);
    // The best is the last, and found where the search begins near it.
    let outcome = decide(&mut cache, &pod, 250);
    assert_eq!(told(&outcome, &pod), "n299 without p299");
    let outcome = decide(&mut cache, &pod, 7);
    assert_eq!(told(&outcome, &pod), "n007 without p7");
}

/// Pods come and victims go at random, and at each step nobody is a victim of a pod that is not
/// more important, no node has more than it can hold, and who was promised a node comes to be there.
#[test]
fn no_node_is_over_committed_and_nobody_ends_for_the_less_important() {
    let mut preemptions = 0;
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut cache = Cache::default();
        for place in 0..4 {
            let cpu = format!("cpu={}", random.random_range(2..8));
            let name = format!("n{place}");
            cache.set_node(&Arc::new(from(node(&name, &[&cpu]))));
        }
        for number in 0..60 {
            let name = format!("p{number}");
            let cpu = format!("cpu={}", random.random_range(1..4));
            let priority = format!("priority={}", random.random_range(0..6));
            let pod = info(&name, &[&cpu, &priority]);
            let offset = random.random_range(0..4);
            let Outcome::NoFit(diagnosis) = schedule(&mut cache, &pod, &[&cpu, &priority], offset)
            else {
                continue;
            };
            let Some(plan) = &diagnosis.remedy().preemption else {
                continue;
            };
            preemptions += 1;
            assert!(!plan.victims.is_empty(), "seed {seed}");
            for victim in &plan.victims {
                assert!(victim.priority < pod.priority, "seed {seed}, {name}");
                cache.remove_pod(&victim.uid);
            }
            cache.nominate(&pod, Some(&plan.node));
            match schedule(&mut cache, &pod, &[&cpu, &priority], offset) {
                Outcome::Node(node) => assert_eq!(node, plan.node, "seed {seed}, {name}"),
                other => panic!("{seed} {name}: {}", told(&other, &pod)),
            }
        }
    }
    assert!(preemptions > 100, "only {preemptions} preemptions");
}

/// One cycle, and the pod is where it said; all nodes hold what is on them.
fn schedule(cache: &mut Cache, pod: &Arc<PodInfo>, words: &[&str], offset: usize) -> Outcome {
    let outcome = decide(cache, pod, offset);
    if let Outcome::Node(node) = &outcome {
        let on = format!("on={node}");
        let words: Vec<&str> = words.iter().copied().chain([on.as_str()]).collect();
        cache.set_pod(info(&pod.uid, &words));
    }
    let mut snapshot = Snapshot::default();
    cache.update(&mut snapshot);
    for node in &snapshot.nodes {
        let (has, used) = (&node.facts.allocatable, &node.requested);
        assert!(
            used.milli_cpu <= has.milli_cpu,
            "{} is over-committed",
            node.name
        );
    }
    outcome
}

mod state; // One state of the filters for all nodes that are tried.
