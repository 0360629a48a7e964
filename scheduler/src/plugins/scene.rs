//! For tests of plugins: a world as text in, what one plugin says of each node out.
//!
//! A line is `node NAME [KEY=VALUE]... [taint=KEY] [feature=NAME]... [has=RESOURCE:AMOUNT]...` or `pod NAME NODE
//! [KEY=VALUE]... [ns=NAMESPACE] [going] [{SPEC}]`; keys and values are labels, SPEC is JSON.

use crate::cache::{Cache, Snapshot};
use crate::framework::{Plugin, PreFilter, Slot, Verdict};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn world(text: &str) -> Snapshot {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (line, spec) = line.split_at(line.find('{').unwrap_or(line.len()));
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "node" {
            let mut node = json!({"metadata": {"name": words[1], "labels": {}}, "spec": {}});
            let mut features = Vec::new();
            for (key, value) in words[2..].iter().filter_map(|word| word.split_once('=')) {
                match key {
                    "taint" => {
                        node["spec"]["taints"] = json!([{"key": value, "effect": "NoSchedule"}]);
                    }
                    "feature" => features.push(value),
                    "has" => {
                        let (resource, amount) = value.split_once(':').unwrap();
                        node["status"]["allocatable"][resource] = amount.into();
                    }
                    _ => node["metadata"]["labels"][key] = value.into(),
                }
            }
            node["status"]["declaredFeatures"] = json!(features);
            cache.set_node(&Arc::new(serde_json::from_value(node).unwrap()));
        } else {
            let spec = if spec.is_empty() {
                json!({})
            } else {
                spec.parse().unwrap()
            };
            let mut placed = object(words[1], &words[3..], spec);
            placed["spec"]["nodeName"] = words[2].into();
            cache.set_pod(Arc::new(info(placed)));
        }
    }
    cache.update(&mut snapshot);
    snapshot
}

fn object(name: &str, words: &[&str], mut spec: Value) -> Value {
    let mut meta = json!({"name": name, "uid": name, "namespace": "default", "labels": {}});
    for word in words {
        match word.split_once('=') {
            Some(("ns", namespace)) => meta["namespace"] = namespace.into(),
            Some((key, value)) => meta["labels"][key] = value.into(),
            None => meta["deletionTimestamp"] = "2030-01-01T00:00:00Z".into(),
        }
    }
    if spec["containers"].is_null() {
        spec["containers"] = json!([]);
    }
    json!({"metadata": meta, "spec": spec})
}

fn info(pod: Value) -> PodInfo {
    PodInfo::new(Arc::new(serde_json::from_value::<Pod>(pod).unwrap()))
}

/// The pod that waits for a node, as `KEY=VALUE ... [ns=NAMESPACE]` and the rest of its spec.
pub fn pod(words: &str, spec: Value) -> PodInfo {
    let words: Vec<&str> = words.split_whitespace().collect();
    info(object("new", &words, spec))
}

/// `a fits, b REASON, c REASON!`: what cannot be helped by evictions ends with `!`.
pub fn filter(plugin: &dyn Plugin, pod: &PodInfo, world: &Snapshot) -> String {
    filter_without(plugin, pod, world, &[])
}

/// As it would be without some of the pods.
pub fn filter_without(
    plugin: &dyn Plugin,
    pod: &PodInfo,
    world: &Snapshot,
    gone: &[&str],
) -> String {
    let mut slot = Slot::default();
    match plugin.pre_filter(pod, world, &mut slot) {
        PreFilter::Filter => {}
        PreFilter::Skip => return "skipped".to_owned(),
        PreFilter::Only(nodes) => return format!("only {nodes:?}"),
        PreFilter::Refuse(verdict) => return told(pod, verdict),
    }
    let kept = slot.clone();
    let mut there = slot.clone();
    let mut nodes = world.nodes.clone();
    for node in &mut nodes {
        for name in gone {
            if let Some(other) = node.pods.iter().find(|one| one.uid == *name).cloned() {
                plugin.remove_pod(pod, &other, node, &mut there);
                node.remove_pod(name);
            }
        }
    }
    let said = said(plugin, pod, &nodes, &there);
    // Whatever is taken away can be put back.
    for (old, node) in world.nodes.iter().zip(&mut nodes) {
        for other in old
            .pods
            .iter()
            .filter(|one| gone.contains(&one.uid.as_str()))
        {
            plugin.add_pod(pod, other, node, &mut there);
            node.add_pod(Arc::clone(other));
        }
    }
    let before = self::said(plugin, pod, &world.nodes, &kept);
    assert_eq!(self::said(plugin, pod, &nodes, &there), before);
    said
}

fn said(plugin: &dyn Plugin, pod: &PodInfo, nodes: &[NodeInfo], slot: &Slot) -> String {
    let said = nodes.iter().map(|node| {
        let verdict = plugin.filter(pod, node, slot);
        format!("{} {}", node.name, told(pod, verdict))
    });
    said.collect::<Vec<_>>().join(", ")
}

fn told(pod: &PodInfo, verdict: Verdict) -> String {
    let end = if matches!(verdict, Verdict::Unresolvable(_)) {
        "!"
    } else {
        ""
    };
    let Some(reason) = verdict.into_reason() else {
        return "fits".to_owned();
    };
    let mut texts = Vec::new();
    reason.each(pod, |text| texts.push(text));
    texts.join("; ") + end
}

/// `a=100 b=0`, of the nodes named, or of all when none is.
pub fn score(plugin: &dyn Plugin, pod: &PodInfo, world: &Snapshot, names: &[&str]) -> String {
    let nodes = world.nodes.iter();
    let nodes = nodes.filter(|node| names.is_empty() || names.contains(&node.name.as_ref()));
    let nodes: Vec<&NodeInfo> = nodes.collect();
    let mut slot = Slot::default();
    if !plugin.pre_score(pod, &nodes, world, &mut slot) {
        return "skipped".to_owned();
    }
    let scores = nodes
        .iter()
        .map(|node| plugin.score(pod, node, world, &slot));
    let mut scores: Vec<i64> = scores.collect();
    plugin.normalize(&nodes, &mut scores, &slot);
    let scores = nodes.iter().zip(scores);
    let scores = scores.map(|(node, score)| format!("{}={score}", node.name));
    scores.collect::<Vec<_>>().join(" ")
}
