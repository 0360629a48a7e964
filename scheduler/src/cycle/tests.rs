//! Whole cycles over a world in memory.

use super::*;
use crate::cache::Cache;
use crate::framework::{PreFilter, Reason};
use crate::laps::Laps;
use crate::plugins;
use crate::views::Views;
use coracle_client::Client;
use coracle_client::clock::Clock;
use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

/// A client that nobody answers: cycles do not use it.
fn client() -> Client {
    let service = tower_service();
    Client::new(service, "default")
}

fn tower_service() -> impl tower::Service<
    http::Request<kube::client::Body>,
    Response = http::Response<kube::client::Body>,
    Error = std::io::Error,
    Future = std::future::Ready<Result<http::Response<kube::client::Body>, std::io::Error>>,
> + Send
+ 'static {
    tower::service_fn(|_| std::future::ready(Err(std::io::Error::other("nobody answers"))))
}

/// World in, decision out. A line is a node or a pod:
/// `node NAME [cpu=N] [label=K:V] [taint=K:EFFECT] [cordoned]`, `pod NODE [cpu=N] [port=N]`.
fn world(text: &str) -> Snapshot {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    for (number, line) in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .enumerate()
    {
        let mut words = line.split_whitespace();
        let (what, name) = (words.next().unwrap(), words.next().unwrap());
        let words: Vec<&str> = words.collect();
        if what == "node" {
            cache.set_node(&Arc::new(node(name, &words)));
        } else {
            let mut pod = pod_of(&words);
            pod["metadata"] = json!({ "name": format!("p{number}"), "uid": format!("p{number}") });
            pod["spec"]["nodeName"] = name.into();
            cache.set_pod(info(pod));
        }
    }
    cache.update(&mut snapshot);
    snapshot
}

fn node(name: &str, words: &[&str]) -> Node {
    let mut node = json!({
        "metadata": { "name": name, "labels": {} },
        "spec": { "taints": [] },
        "status": { "allocatable": { "cpu": "2", "memory": "4Gi", "pods": "10" } },
    });
    for word in words {
        match word.split_once('=') {
            Some(("cpu", cpu)) => node["status"]["allocatable"]["cpu"] = cpu.into(),
            Some(("pods", pods)) => node["status"]["allocatable"]["pods"] = pods.into(),
            Some(("label", label)) => {
                let (key, value) = label.split_once(':').unwrap();
                node["metadata"]["labels"][key] = value.into();
            }
            Some(("taint", taint)) => {
                let (key, effect) = taint.split_once(':').unwrap();
                node["spec"]["taints"] = json!([{ "key": key, "effect": effect }]);
            }
            Some(("image", image)) => {
                node["status"]["images"] = json!([{ "names": [image], "sizeBytes": 900_000_000 }]);
            }
            _ => node["spec"]["unschedulable"] = true.into(),
        }
    }
    serde_json::from_value(node).unwrap()
}

fn pod_of(words: &[&str]) -> Value {
    let mut container = json!({ "name": "c", "image": "app:1", "resources": { "requests": {} } });
    for word in words {
        match word.split_once('=').unwrap() {
            ("cpu", cpu) => container["resources"]["requests"]["cpu"] = cpu.into(),
            (_, port) => {
                let port: i32 = port.parse().unwrap();
                container["ports"] = json!([{ "containerPort": port, "hostPort": port }]);
            }
        }
    }
    json!({ "metadata": { "name": "p", "uid": "p" }, "spec": { "containers": [container] } })
}

fn info(pod: Value) -> Arc<PodInfo> {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    Arc::new(PodInfo::new(Arc::new(pod)))
}

fn decide(snapshot: &Snapshot, pod: Value) -> String {
    let profile = plugins::default_profile("default-scheduler", &client(), &Views::default());
    let pod = info(pod);
    match run(&profile, snapshot, &pod, &mut Rotation::default(), |_| 0) {
        Outcome::Node(name) => name.to_string(),
        Outcome::NoFit(diagnosis) => {
            format!(
                "{} [{}]",
                diagnosis.message(&pod),
                diagnosis.plugins().join(" ")
            )
        }
        Outcome::Failed(why) => why,
    }
}

fn check(text: &str, pod: Value, expected: Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    expected.assert_eq(&decide(&world(text), pod));
}

fn with(mut pod: Value, spec: Value) -> Value {
    for (key, value) in spec.as_object().unwrap() {
        pod["spec"][key] = value.clone();
    }
    pod
}

#[test]
fn no_nodes_at_all() {
    check(
        "",
        pod_of(&[]),
        expect!["no nodes available to schedule pods []"],
    );
}

#[test]
fn reasons_are_counted_over_nodes_and_sorted() {
    check(
        "node a cpu=1
         node b cpu=1
         node c cordoned
         node d taint=k:NoSchedule
         node e pods=0",
        pod_of(&["cpu=2"]),
        expect![
            "0/5 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/5 nodes are available: 1 No preemption victims found for incoming pod, 4 Preemption is not helpful for scheduling. [NodeResourcesFit NodeUnschedulable TaintToleration]"
        ],
    );
}

#[test]
fn the_emptier_node_is_chosen() {
    check(
        "node a cpu=4
         pod a cpu=3
         node b cpu=4
         pod b cpu=1",
        pod_of(&["cpu=1"]),
        expect!["b"],
    );
}

#[test]
fn a_host_port_is_taken_once() {
    check(
        "node a
         pod a port=80",
        pod_of(&["port=80"]),
        expect![
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod. [NodePorts]"
        ],
    );
}

#[test]
fn selector_and_affinity_choose() {
    let nodes = "node a label=zone:north
                 node b label=zone:south";
    let selected = with(pod_of(&[]), json!({ "nodeSelector": { "zone": "south" } }));
    check(nodes, selected, expect!["b"]);
    let preferred = json!({ "affinity": { "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 5, "preference": {
            "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["south"] }] } }],
    } } });
    check(nodes, with(pod_of(&[]), preferred), expect!["b"]);
    let nowhere = with(pod_of(&[]), json!({ "nodeSelector": { "zone": "west" } }));
    check(
        nodes,
        nowhere,
        expect![
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling. [NodeAffinity]"
        ],
    );
}

#[test]
fn a_node_with_the_image_and_without_avoided_taints_is_preferred() {
    check("node a\nnode b image=app:1", pod_of(&[]), expect!["b"]);
    check(
        "node a taint=k:PreferNoSchedule\nnode b",
        pod_of(&[]),
        expect!["b"],
    );
}

#[test]
fn large_clusters_are_sampled() {
    assert_eq!(
        [1, 100, 101, 1000, 5000, 6000].map(|nodes| enough(nodes, 0)),
        [1, 100, 100, 420, 500, 300]
    );
    assert_eq!(
        [100, 101, 1000, 6000].map(|nodes| enough(nodes, 30)),
        [100, 100, 300, 1800]
    );
    assert_eq!(enough(6000, 100), 6000);
}

/// Lets the pod on the nodes that it names, and keeps count of pods for its filter.
#[derive(Debug)]
struct Picky(&'static str, &'static [&'static str]);

impl crate::framework::Plugin for Picky {
    fn name(&self) -> &'static str {
        self.0
    }

    fn points(&self) -> crate::framework::Points {
        crate::framework::Points {
            pre_filter: true,
            ..crate::framework::Points::FILTER
        }
    }

    fn pre_filter(&self, _: &PodInfo, _: &Snapshot, _: &mut Slot) -> PreFilter {
        PreFilter::Only(self.1.iter().map(|name| Arc::from(*name)).collect())
    }
}

fn decided_by(plugins: &[(&'static str, &'static [&'static str])]) -> String {
    let plugins = plugins.iter().map(|(name, nodes)| {
        let plugin: crate::framework::SharedPlugin = Arc::new(Picky(name, nodes));
        (plugin, 0)
    });
    let profile = Profile::new("default-scheduler", plugins.collect());
    let (world, pod) = (world("node a\nnode b\nnode c"), info(pod_of(&[])));
    match run(&profile, &world, &pod, &mut Rotation::default(), |_| 0) {
        Outcome::Node(name) => name.to_string(),
        Outcome::NoFit(diagnosis) => {
            let by = diagnosis.plugins().join(" ");
            format!("{} [{by}]", diagnosis.message(&pod))
        }
        Outcome::Failed(why) => why,
    }
}

#[test]
fn plugins_narrow_the_nodes_together() {
    expect!["b"].assert_eq(&decided_by(&[("One", &["a", "b"]), ("Two", &["b", "c"])]));
    expect!["0/3 nodes are available: node(s) didn't satisfy plugin(s) [One Two] simultaneously. [One Two]"]
        .assert_eq(&decided_by(&[("Two", &["a"]), ("One", &["b"])]));
    expect!["0/3 nodes are available: node(s) didn't satisfy plugin One. [One]"]
        .assert_eq(&decided_by(&[("One", &[])]));
}

/// Cannot tell of node `b`, and lets the pod on all others.
#[derive(Debug)]
struct Unsure;

impl crate::framework::Plugin for Unsure {
    fn name(&self) -> &'static str {
        "Unsure"
    }

    fn points(&self) -> crate::framework::Points {
        crate::framework::Points::FILTER
    }

    fn filter(&self, _: &PodInfo, node: &NodeInfo, _: &Slot) -> Verdict {
        match &*node.name {
            "b" => Verdict::Failed(Reason::Text("it broke")),
            _ => Verdict::Fit,
        }
    }
}

#[test]
fn a_filter_that_cannot_decide_ends_the_cycle() {
    let plugin: crate::framework::SharedPlugin = Arc::new(Unsure);
    let profile = Profile::new("default-scheduler", vec![(plugin, 0)]);
    let pod = info(pod_of(&[]));
    for (nodes, expected) in [
        ("node a\nnode c", "a"),
        (
            "node a\nnode b",
            "running \"Unsure\" filter plugin: it broke",
        ),
    ] {
        let outcome = run(
            &profile,
            &world(nodes),
            &pod,
            &mut Rotation::default(),
            |_| 0,
        );
        let said = match outcome {
            Outcome::Node(name) => name.to_string(),
            Outcome::NoFit(diagnosis) => diagnosis.message(&pod),
            Outcome::Failed(why) => why,
        };
        assert_eq!(said, expected);
    }
}

/// How often each plugin was asked, and of how many calls the time is known.
fn counted(is_sampled: bool) -> (Vec<[u32; 4]>, usize) {
    let world = world("node a cpu=1\nnode b cordoned\nnode c\nnode d taint=k:NoSchedule");
    let profile = plugins::default_profile("default-scheduler", &client(), &Views::default());
    let pod = info(pod_of(&["cpu=1"]));
    let mut laps = Laps::new(Clock::system());
    laps.begin(profile.plugins().count(), is_sampled);
    let filters = Filters {
        timing: laps.timing(),
        ..Filters::new(&profile, &world, &pod)
    };
    super::decide(filters, &mut Rotation::default(), |_| 0);
    (laps.asked(), laps.calls().len())
}

#[tokio::test]
async fn calls_are_counted_the_same_whether_they_are_timed_or_not() {
    let (counted, none) = counted(false);
    let (one_by_one, timed) = self::counted(true);
    assert_eq!(counted, one_by_one);
    assert_eq!(none, 0);
    let of = |stage: Stage| counted.iter().map(|row| row[stage as usize]).max();
    assert_eq!((of(Stage::Filter), of(Stage::Score)), (Some(4), Some(2)));
    assert!(timed > 0);
}
