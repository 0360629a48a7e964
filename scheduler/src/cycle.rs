//! One pod over one snapshot: filter, score, choose. Pure: randomness is an argument, as is what
//! takes the time of it.

use crate::cache::Snapshot;
use crate::framework::{
    Begun, CycleState, Filters, Nomination, Point, Profile, Refusal, Remedy, SharedPlugin, Slot,
    Unfit, Verdict,
};
use crate::laps::{Stage, Status};
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
    NoFit(Box<Diagnosis>),
    /// A plugin could not decide. Users see the text.
    Failed(String),
}

/// Where the next cycle begins to look, so that a large cluster is used evenly.
#[derive(Debug, Default)]
pub struct Rotation(usize);

#[cfg(test)]
impl Rotation {
    pub fn at(place: usize) -> Self {
        Self(place)
    }
}

/// How many fitting nodes are enough to choose from, as upstream samples: all of a small cluster,
/// half of a middling one, 5% of a huge one; or `percent` of it where that is not 0.
fn enough(nodes: usize, percent: usize) -> usize {
    if nodes <= NODES_LOOKED_AT_MIN {
        return nodes;
    }
    let percent = match percent {
        0 => 50_usize.saturating_sub(nodes / 125).max(PERCENT_MIN),
        percent => percent,
    };
    (nodes * percent / 100).max(NODES_LOOKED_AT_MIN)
}

/// A cycle that is not timed.
pub fn run(
    profile: &Profile,
    world: &Snapshot,
    pod: &PodInfo,
    rotation: &mut Rotation,
    pick: impl FnOnce(usize) -> usize,
) -> Outcome {
    decide(Filters::new(profile, world, pod), rotation, pick)
}

/// `pick` chooses among equals: given how many there are, it answers which.
pub fn decide(
    filters: Filters<'_>,
    rotation: &mut Rotation,
    pick: impl FnOnce(usize) -> usize,
) -> Outcome {
    let timing = filters.timing;
    let mut diagnosis = Diagnosis::new(filters.world.nodes.len());
    let begun = timing.point(
        Stage::PreFilter,
        || filters.begin(),
        |begun| match begun {
            Ok(_) => Status::Success,
            Err(refused) => Status::of(&refused.verdict),
        },
    );
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(refused) => {
            diagnosis.refuse_all(refused);
            return no_fit(filters, &CycleState::default(), diagnosis, pick);
        }
    };
    if let Some(node) = nominated(filters, &mut begun) {
        return Outcome::Node(Arc::clone(&node.name));
    }
    let fitting = timing.point(
        Stage::Filter,
        || filter(filters, &mut begun, rotation, &mut diagnosis),
        |found| match found {
            Ok(_) => Status::Success,
            Err(_) => Status::Error,
        },
    );
    let fitting = match fitting {
        Ok(fitting) => fitting,
        Err(failure) => return Outcome::Failed(failure),
    };
    match fitting.as_slice() {
        [] => no_fit(filters, &begun.state, diagnosis, pick),
        [one] => Outcome::Node(Arc::clone(&one.name)),
        many => {
            let scores = score(filters, many);
            Outcome::Node(Arc::clone(&choose(many, &scores, pick).name))
        }
    }
}

/// The node that the pod was promised, where it fits by now: it likely fits on no other.
fn nominated<'a>(filters: Filters<'a>, begun: &mut Begun) -> Option<&'a NodeInfo> {
    let world = filters.world;
    let name = world.nominated.node_of(&filters.pod.uid)?;
    let node = &world.nodes[world.place_of(name)?];
    let refusal = filters.timing.point(
        Stage::Filter,
        || filters.refusal_with_nominated(node, &mut begun.state),
        |_| Status::Success,
    );
    (begun.may_take(node) && refusal.is_none()).then_some(node)
}

/// Asks what can be done about it; the first that does something ends it.
fn no_fit(
    filters: Filters<'_>,
    state: &CycleState,
    mut diagnosis: Diagnosis,
    pick: impl FnOnce(usize) -> usize,
) -> Outcome {
    if filters.world.nodes.is_empty() {
        diagnosis.remedy.nomination = Nomination::Clear;
        return Outcome::NoFit(Box::new(diagnosis));
    }
    let mut helpful = std::mem::take(&mut diagnosis.helpful);
    // They were found from wherever the rotation began.
    helpful.sort_unstable();
    let offset = match helpful.len() {
        0 => 0,
        many => pick(many),
    };
    let unfit = Unfit {
        filters,
        state,
        helpful: &helpful,
        refused_by: diagnosis.refused_by,
        offset,
    };
    let timing = filters.timing;
    let status = |is_remedied: bool| match is_remedied {
        true => Status::Success,
        false => Status::Unschedulable,
    };
    let mut plugins = filters.profile.at(Point::PostFilter);
    let ask = |(place, plugin): (usize, &SharedPlugin)| {
        let at = (Stage::PostFilter, place);
        let remedy = |remedy: &Remedy| status(remedy.is_found());
        let remedy = timing.call(at, || plugin.post_filter(&unfit), remedy);
        diagnosis.remedied_by(remedy)
    };
    // Where nobody looks for a remedy, that is no look for one.
    if filters.profile.at(Point::PostFilter).next().is_some() {
        timing.point(Stage::PostFilter, || plugins.any(ask), |done| status(*done));
    }
    Outcome::NoFit(Box::new(diagnosis))
}

fn filter<'a>(
    filters: Filters<'a>,
    begun: &mut Begun,
    rotation: &mut Rotation,
    diagnosis: &mut Diagnosis,
) -> Result<Vec<&'a NodeInfo>, String> {
    let nodes = &filters.world.nodes;
    let enough = enough(nodes.len(), filters.profile.percentage_of_nodes);
    let mut fitting = Vec::new();
    let (mut looked_at, mut left_out) = (0, 0);
    while looked_at < nodes.len() && fitting.len() < enough {
        let place = (rotation.0 + looked_at) % nodes.len();
        let node = &nodes[place];
        looked_at += 1;
        if !begun.may_take(node) {
            left_out += 1;
            continue;
        }
        match filters.refusal_with_nominated(node, &mut begun.state) {
            None => fitting.push(node),
            Some(Refusal {
                plugin,
                verdict: Verdict::Failed(reason),
            }) => {
                let why = reason.texts(filters.pod).join(", ");
                return Err(format!("running \"{plugin}\" filter plugin: {why}"));
            }
            Some(refusal) => diagnosis.refuse(place, refusal),
        }
    }
    if fitting.is_empty() {
        diagnosis.leave_out(left_out, &begun.only_by);
    }
    rotation.0 = (rotation.0 + looked_at) % nodes.len().max(1);
    Ok(fitting)
}

/// The weighted sum of every plugin's normalized scores, a node.
fn score(filters: Filters<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    let mut totals = vec![0; nodes.len()];
    each_score(filters, nodes, |place, scores| {
        for (total, score) in totals.iter_mut().zip(scores) {
            *total += score * filters.profile.weight(place);
        }
    });
    totals
}

/// Calls `told` with the place of each plugin that has something to say, and its normalized scores
/// of the nodes.
pub fn each_score(filters: Filters<'_>, nodes: &[&NodeInfo], mut told: impl FnMut(usize, &[i64])) {
    let (pod, world, timing) = (filters.pod, filters.world, filters.timing);
    let work = || pre_score(filters, nodes);
    let asked = timing.point(Stage::PreScore, work, |_| Status::Success);
    let mut scores = vec![0; nodes.len()];
    let is_detailed = timing.is_detailed();
    let work = || {
        for (place, plugin, slot) in asked {
            let at = (Stage::Score, place);
            for (score, node) in scores.iter_mut().zip(nodes) {
                let ask = || plugin.score(pod, node, world, &slot);
                *score = match is_detailed {
                    true => timing.call(at, ask, |_| Status::Success),
                    false => ask(),
                };
            }
            if !is_detailed {
                timing.called(at, nodes.len());
            }
            let at = (Stage::ScoreExtensionNormalize, place);
            let ask = || plugin.normalize(nodes, &mut scores, &slot);
            timing.call(at, ask, |()| Status::Success);
            told(place, &scores);
        }
    };
    timing.point(Stage::Score, work, |()| Status::Success);
}

/// Who has something to say of these nodes, with what it worked out for that.
fn pre_score<'a>(
    filters: Filters<'a>,
    nodes: &[&NodeInfo],
) -> Vec<(usize, &'a SharedPlugin, Slot)> {
    let status = |has_a_say: &bool| match has_a_say {
        true => Status::Success,
        false => Status::Skip,
    };
    let profile = filters.profile;
    let mut asked = Vec::new();
    for (place, plugin) in profile.at(Point::Score) {
        let mut slot = Slot::default();
        let ask = || plugin.pre_score(filters.pod, nodes, filters.world, &mut slot);
        if !profile.has(Point::PreScore, place)
            || filters.timing.call((Stage::PreScore, place), ask, status)
        {
            asked.push((place, plugin, slot));
        }
    }
    asked
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
