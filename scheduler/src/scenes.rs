//! For tests of all filters and scores together: a world and a pod as text in, what comes of it out.
//!
//! Lines are `node NAME [KEY=VALUE]... [{...}]`, `pod NAME on=NODE [KEY=VALUE]... [ns=NAMESPACE]
//! [{SPEC}]`, `namespace NAME [KEY=VALUE]...` and `waits [KEY=VALUE]... [{SPEC}]`; keys and values are
//! labels. What is in braces is YAML: of a node, its spec with `status`. A pod's spec may have short
//! forms: `near`, `far`, `on`, `wish`, `spread` (see `short`).

mod filters;
mod preemption;
mod scores;
mod short;
mod wakes;

use crate::cache::{Cache, Snapshot};
use crate::explain::{self, Explanation, NodeVerdict, Verdict};
use crate::framework::{Profile, SharedPlugin};
use crate::plugins::{
    default_preemption, image_locality, inter_pod_affinity, node_affinity, node_declared_features,
    node_name, node_ports, node_resources_balanced_allocation, node_resources_fit,
    node_unschedulable, pod_topology_spread, taint_toleration, volume_restrictions,
};
use crate::pod_info::PodInfo;
use crate::views::Views;
use coracle_client::ObjectKey;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use std::sync::Arc;

/// Of every world's nodes that say nothing else.
const ALLOCATABLE: &str = r#"{"cpu": "4", "memory": "32Gi", "pods": "110"}"#;

/// All of the default profile that needs no client.
fn profile(views: &Views) -> Profile {
    let spread = pod_topology_spread::PodTopologySpread::new(views.owners.clone());
    let between = inter_pod_affinity::InterPodAffinity::new(
        views.namespaces.clone(),
        inter_pod_affinity::Args::default(),
    );
    let volumes = volume_restrictions::VolumeRestrictions::new(Arc::clone(&views.volumes));
    let balanced = node_resources_balanced_allocation::BalancedAllocation::default();
    let plugins: Vec<(SharedPlugin, i64)> = vec![
        (Arc::new(node_unschedulable::NodeUnschedulable), 0),
        (Arc::new(node_name::NodeName), 0),
        (Arc::new(taint_toleration::TaintToleration), 3),
        (Arc::new(node_affinity::NodeAffinity::default()), 2),
        (Arc::new(node_ports::NodePorts), 0),
        (Arc::new(node_resources_fit::NodeResourcesFit::default()), 1),
        (Arc::new(volumes), 0),
        (Arc::new(spread), 2),
        (Arc::new(between), 2),
        (
            Arc::new(default_preemption::DefaultPreemption::default()),
            0,
        ),
        (Arc::new(balanced), 1),
        (Arc::new(image_locality::ImageLocality), 1),
        (Arc::new(node_declared_features::NodeDeclaredFeatures), 0),
    ];
    Profile::new("default-scheduler", plugins)
}

struct Scene {
    views: Views,
    world: Snapshot,
    waits: PodInfo,
}

impl Scene {
    fn of(text: &str) -> Self {
        let (views, mut cache) = (Views::default(), Cache::default());
        let mut waits = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_whitespace().next() {
                Some("node") => drop(cache.set_node(&node(line))),
                Some("pod") => drop(cache.set_pod(Arc::new(pod(line)))),
                Some("waits") => waits = Some(pod(line)),
                Some("budget") => cache.set_budget(&budget(line)),
                Some("namespace") => {
                    let (words, _) = parts(line);
                    let labels = labels(&words[2..]);
                    let labels = serde_json::from_value(labels).unwrap();
                    views.namespaces.set(ObjectKey::new("", words[1]), labels);
                }
                other => panic!("what is {other:?}?"),
            }
        }
        let mut world = Snapshot::default();
        cache.update(&mut world);
        let waits = waits.unwrap_or_else(|| pod("waits"));
        Self {
            views,
            world,
            waits,
        }
    }

    fn explained(&self) -> Explanation {
        explain::explain(&profile(&self.views), &self.world, &self.waits)
    }
}

/// `fits: a b`, then a line for each node that is refused, with the plugins and what they say.
fn fitting(text: &str) -> String {
    let told = Scene::of(text).explained();
    let mut fits: Vec<&str> = Vec::new();
    let mut refused = Vec::new();
    for one in &told.nodes {
        match &one.verdict {
            Verdict::Fits(_) => fits.push(&one.node),
            Verdict::Refused(by) => {
                let by = by
                    .iter()
                    .map(|(plugin, why)| format!("{plugin}: {}", why.join(", ")));
                refused.push(format!(
                    "{} {}",
                    one.node,
                    by.collect::<Vec<_>>().join("; ")
                ));
            }
        }
    }
    fits.sort_unstable();
    let mut lines = vec![format!("fits: {}", fits.join(" "))];
    lines.append(&mut refused);
    lines.join("\n")
}

/// What one plugin gives the nodes that fit: `a=100 b=0`.
fn given(text: &str, plugin: &str) -> String {
    let told = Scene::of(text).explained();
    let mut given: Vec<String> = told
        .nodes
        .iter()
        .filter_map(|node| Some(format!("{}={}", node.node, score(node, plugin)?)))
        .collect();
    given.sort_unstable();
    given.join(" ")
}

fn score(node: &NodeVerdict, plugin: &str) -> Option<i64> {
    let Verdict::Fits(scores) = &node.verdict else {
        return None;
    };
    let found = scores.iter().find(|one| one.plugin == plugin);
    Some(found?.score)
}

/// Words, and what is in braces.
fn parts(line: &str) -> (Vec<&str>, Value) {
    let (words, braces) = line.split_at(line.find('{').unwrap_or(line.len()));
    let value = match braces {
        "" => json!({}),
        braces => serde_yaml_ng::from_str(braces).unwrap(),
    };
    (words.split_whitespace().collect(), value)
}

fn labels(words: &[&str]) -> Value {
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    pairs
        .filter(|(key, _)| !["on", "ns"].contains(key))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn node(line: &str) -> Arc<Node> {
    let (words, mut spec) = parts(line);
    let mut status = spec["status"].take();
    if status["allocatable"].is_null() {
        status["allocatable"] = ALLOCATABLE.parse().unwrap();
    }
    spec.as_object_mut().unwrap().remove("status");
    let node = json!({
        "metadata": { "name": words[1], "labels": labels(&words[2..]) },
        "spec": spec,
        "status": status,
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn pod(line: &str) -> PodInfo {
    let (words, spec) = parts(line);
    let name = match words[0] {
        "pod" => words[1],
        other => other,
    };
    let mut spec = short::expanded(spec);
    if spec["containers"].is_null() {
        spec["containers"] = json!([{ "name": "c" }]);
    }
    let word = |key: &str| {
        let mut pairs = words.iter().filter_map(|word| word.split_once('='));
        pairs
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    };
    spec["nodeName"] = json!(word("on"));
    let status = spec.as_object_mut().unwrap().remove("status");
    let pod = json!({
        "metadata": {
            "name": name, "uid": name, "labels": labels(&words),
            "namespace": word("ns").unwrap_or("default"),
        },
        "spec": spec,
        "status": status,
    });
    PodInfo::new(Arc::new(serde_json::from_value::<Pod>(pod).unwrap()))
}

/// `budget NAME allowed=N KEY=VALUE`.
fn budget(line: &str) -> k8s_openapi::api::policy::v1::PodDisruptionBudget {
    let (words, _) = parts(line);
    let allowed: i32 = words[2].trim_start_matches("allowed=").parse().unwrap();
    let budget = json!({
        "metadata": { "name": words[1], "namespace": "default" },
        "spec": { "selector": { "matchLabels": labels(&words[3..]) } },
        "status": {
            "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1,
        },
    });
    serde_json::from_value(budget).unwrap()
}
