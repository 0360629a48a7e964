//! One pod over one snapshot: filter, score, choose. Pure: randomness is an argument.

use crate::cache::Snapshot;
use crate::framework::{Begun, Filters, Profile, Slot};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;
use std::sync::Arc;

mod diagnosis;

pub use diagnosis::Diagnosis;

/// Clusters up to this many nodes have every node looked at.
const NODES_LOOKED_AT_MIN: usize = 100;
/// No cluster is so large that fewer than this part, in percent, is looked at.
const PERCENT_MIN: usize = 5;

/// What a cycle found.
#[derive(Debug)]
pub enum Outcome {
    Node(Arc<str>),
    NoFit(Diagnosis),
}

/// Where the next cycle begins to look, so that a large cluster is used evenly.
#[derive(Debug, Default)]
pub struct Rotation(usize);

/// How many fitting nodes are enough to choose from, as upstream samples: all of a small cluster,
/// half of a middling one, 5% of a huge one.
fn enough(nodes: usize) -> usize {
    if nodes <= NODES_LOOKED_AT_MIN {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(PERCENT_MIN);
    (nodes * percent / 100).max(NODES_LOOKED_AT_MIN)
}

/// `pick` chooses among equals: given how many there are, it answers which.
pub fn run(
    profile: &Profile,
    world: &Snapshot,
    pod: &PodInfo,
    rotation: &mut Rotation,
    pick: impl FnOnce(usize) -> usize,
) -> Outcome {
    let mut diagnosis = Diagnosis::new(world.nodes.len());
    let filters = Filters {
        profile,
        world,
        pod,
    };
    let fitting = match filters.begin() {
        Ok(begun) => filter(filters, &begun, rotation, &mut diagnosis),
        Err(refused) => {
            diagnosis.refuse_all(refused);
            return Outcome::NoFit(diagnosis);
        }
    };
    match fitting.as_slice() {
        [] => {
            for (_, plugin) in profile.at(|points| points.post_filter) {
                if let Some(text) = plugin.post_filter(pod, world) {
                    diagnosis.post_filter = Some(text);
                }
            }
            Outcome::NoFit(diagnosis)
        }
        [one] => Outcome::Node(Arc::clone(&one.name)),
        many => {
            let scores = score(profile, world, pod, many);
            Outcome::Node(Arc::clone(&choose(many, &scores, pick).name))
        }
    }
}

fn filter<'a>(
    filters: Filters<'a>,
    begun: &Begun,
    rotation: &mut Rotation,
    diagnosis: &mut Diagnosis,
) -> Vec<&'a NodeInfo> {
    let nodes = &filters.world.nodes;
    let enough = enough(nodes.len());
    let mut fitting = Vec::new();
    let mut looked_at = 0;
    while looked_at < nodes.len() && fitting.len() < enough {
        let node = &nodes[(rotation.0 + looked_at) % nodes.len()];
        looked_at += 1;
        if !begun.may_take(node) {
            continue;
        }
        match filters.refusal(node, &begun.state) {
            None => fitting.push(node),
            Some(refusal) => diagnosis.refuse(refusal),
        }
    }
    if fitting.is_empty() {
        diagnosis.leave_out(&begun.only_by);
    }
    rotation.0 = (rotation.0 + looked_at) % nodes.len().max(1);
    fitting
}

/// The weighted sum of every plugin's normalized scores, a node.
fn score(profile: &Profile, world: &Snapshot, pod: &PodInfo, nodes: &[&NodeInfo]) -> Vec<i64> {
    let mut totals = vec![0; nodes.len()];
    let mut scores = vec![0; nodes.len()];
    for (place, plugin) in profile.at(|points| points.score) {
        let mut slot = Slot::default();
        if !plugin.pre_score(pod, nodes, world, &mut slot) {
            continue;
        }
        for (score, node) in scores.iter_mut().zip(nodes) {
            *score = plugin.score(pod, node, world, &slot);
        }
        plugin.normalize(nodes, &mut scores, &slot);
        for (total, score) in totals.iter_mut().zip(&scores) {
            *total += score * profile.weight(place);
        }
    }
    totals
}

fn choose<'a>(
    nodes: &[&'a NodeInfo],
    scores: &[i64],
    pick: impl FnOnce(usize) -> usize,
) -> &'a NodeInfo {
    let best = scores.iter().copied().max().unwrap_or(0);
    let equals: Vec<usize> = (0..nodes.len())
        .filter(|index| scores[*index] == best)
        .collect();
    nodes[equals[pick(equals.len()) % equals.len()]]
}

#[cfg(test)]
mod tests;
