//! Why a pod fits on a node or does not: every filter's verdict and every score, node by node.
//!
//! A cycle stops at a node's first refusal, at enough nodes that fit, and does not score the only
//! one that fits; here nothing is left out. Pure.

mod live; // Of a cluster.

pub use live::{ExplainError, Explained, explain_pod};

use crate::cache::Snapshot;
use crate::cycle::{self, Outcome, Rotation};
use crate::framework::{Begun, Filters, Preemption, Profile};
use crate::node_info::NodeInfo;
use crate::pod_info::PodInfo;

/// One plugin's part in the score of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    pub plugin: &'static str,
    pub weight: i64,
    /// Between 0 and 100.
    pub score: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fits(Vec<Score>),
    /// Which plugins refuse it, each with what it says.
    Refused(Vec<(&'static str, Vec<String>)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVerdict {
    pub node: String,
    pub verdict: Verdict,
}

impl NodeVerdict {
    /// The weighted sum, where the node fits.
    pub fn total(&self) -> Option<i64> {
        let Verdict::Fits(scores) = &self.verdict else {
            return None;
        };
        Some(scores.iter().map(|one| one.score * one.weight).sum())
    }
}

/// Who would have to go, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempts {
    pub node: String,
    /// As `namespace/name`, the most important first.
    pub victims: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The plugin that keeps the pod out of the queue.
    pub gated_by: Option<&'static str>,
    /// The best first, then those that do not fit, each by name. None where the pod is refused
    /// before any node is looked at.
    pub nodes: Vec<NodeVerdict>,
    /// What the pod's event says where no node fits, or where a plugin cannot decide.
    pub message: Option<String>,
    /// What would be done about it where no node fits.
    pub preempts: Option<Preempts>,
}

impl Explanation {
    /// The nodes between which chance decides.
    pub fn best(&self) -> Vec<&str> {
        let highest = self.nodes.iter().filter_map(NodeVerdict::total).max();
        let best = self.nodes.iter();
        best.filter(|one| one.total().is_some() && one.total() == highest)
            .map(|one| one.node.as_str())
            .collect()
    }
}

pub fn explain(profile: &Profile, world: &Snapshot, pod: &PodInfo) -> Explanation {
    let mut told = Explanation::default();
    let gate = profile.plugins().find(|plugin| !plugin.pre_enqueue(pod));
    told.gated_by = gate.map(|plugin| plugin.name());
    let filters = Filters::new(profile, world, pod);
    let first = |_| 0;
    match cycle::run(profile, world, pod, &mut Rotation::default(), first) {
        Outcome::Node(_) => {}
        Outcome::NoFit(diagnosis) => {
            told.message = Some(diagnosis.message(pod));
            told.preempts = diagnosis.remedy().preemption.as_ref().map(preempts);
        }
        Outcome::Failed(why) => told.message = Some(why),
    }
    let Ok(mut begun) = filters.begin() else {
        return told;
    };
    let mut fitting: Vec<&NodeInfo> = Vec::new();
    for node in &world.nodes {
        let refusals = refusals(filters, &mut begun, node);
        if refusals.is_empty() {
            fitting.push(node);
        } else {
            told.nodes.push(NodeVerdict {
                node: node.name.to_string(),
                verdict: Verdict::Refused(refusals),
            });
        }
    }
    told.nodes.extend(scored(filters, &fitting));
    told.nodes.sort_by(|a, b| {
        let by_total = b.total().cmp(&a.total());
        by_total.then_with(|| a.node.cmp(&b.node))
    });
    told
}

fn preempts(plan: &Preemption) -> Preempts {
    let victims = plan.victims.iter().map(|pod| pod.key.to_string());
    Preempts {
        node: plan.node.to_string(),
        victims: victims.collect(),
    }
}

fn refusals(
    filters: Filters<'_>,
    begun: &mut Begun,
    node: &NodeInfo,
) -> Vec<(&'static str, Vec<String>)> {
    if !begun.may_take(node) {
        let left_out = "another node is asked for".to_owned();
        let by = begun.only_by.iter();
        return by.map(|plugin| (*plugin, vec![left_out.clone()])).collect();
    }
    let all = filters.refusals(node, &begun.state);
    let mut all: Vec<_> = all
        .filter_map(|refusal| {
            let reason = refusal.verdict.into_reason()?;
            Some((refusal.plugin, reason.texts(filters.pod)))
        })
        .collect();
    // Room that was promised to others is seen by whoever yields to them.
    if all.is_empty()
        && let Some(refusal) = filters.refusal_with_nominated(node, &mut begun.state)
        && let Some(reason) = refusal.verdict.into_reason()
    {
        let mut texts = reason.texts(filters.pod);
        texts.push("with the pods that were promised the node".to_owned());
        all.push((refusal.plugin, texts));
    }
    all
}

fn scored(filters: Filters<'_>, fitting: &[&NodeInfo]) -> Vec<NodeVerdict> {
    let profile = filters.profile;
    let names: Vec<_> = profile.plugins().map(|one| one.name()).collect();
    let mut rows: Vec<Vec<Score>> = vec![Vec::new(); fitting.len()];
    cycle::each_score(filters, fitting, |place, scores| {
        for (row, score) in rows.iter_mut().zip(scores) {
            row.push(Score {
                plugin: names[place],
                weight: profile.weight(place),
                score: *score,
            });
        }
    });
    let rows = fitting.iter().zip(rows);
    rows.map(|(node, scores)| NodeVerdict {
        node: node.name.to_string(),
        verdict: Verdict::Fits(scores),
    })
    .collect()
}

#[cfg(test)]
mod tests;
