//! What must be the same of two decisions, and how one world may end. Pure.

use crate::upstream::Decision;
use coracle_scheduler::explain::{Explanation, Verdict};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Placed,
    FitsNowhere,
    Gated,
    Preempts,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::FitsNowhere => "fit nowhere",
            Self::Gated => "gated",
            Self::Preempts => "preempted",
        }
    }
}

/// What differs, in one sentence.
pub fn decisions(upstream: &Decision, ours: &Explanation) -> Result<Outcome, String> {
    let fitting: BTreeSet<&str> = scores(ours).keys().copied().collect();
    if upstream.fitting() != fitting {
        return Err(format!(
            "upstream fits {:?} ({:?}), ours {fitting:?} ({:?})",
            upstream.fitting(),
            upstream.refusal,
            ours.message
        ));
    }
    let scores = scores(ours);
    let is_other = |(node, total): (&String, &i64)| scores.get(node.as_str()) != Some(total);
    if upstream.totals.iter().any(is_other) {
        let parts = parts(ours);
        return Err(format!(
            "scores: upstream {:?}, ours {scores:?}; of them {:?} and {parts:?}",
            upstream.totals, upstream.parts
        ));
    }
    preemptions(upstream, ours)?;
    if let Some(refusal) = &upstream.refusal {
        same_text(refusal, ours.message.as_deref().unwrap_or_default())?;
    }
    Ok(match (&upstream.refusal, &upstream.preempts_on) {
        (_, Some(_)) => Outcome::Preempts,
        (Some(_), None) => Outcome::FitsNowhere,
        (None, None) => Outcome::Placed,
    })
}

/// The node and the pods that go. Worlds are such that no two candidates are equally good.
fn preemptions(upstream: &Decision, ours: &Explanation) -> Result<(), String> {
    let theirs = upstream.preempts_on.as_ref();
    let theirs = theirs.map(|node| (node.clone(), upstream.victims.clone()));
    let ours = ours.preempts.as_ref();
    let ours = ours.map(|plan| (plan.node.clone(), plan.victims.iter().cloned().collect()));
    if theirs == ours {
        return Ok(());
    }
    Err(format!("preemption: upstream {theirs:?}, ours {ours:?}"))
}

pub fn same_text(upstream: &str, ours: &str) -> Result<(), String> {
    if upstream == ours {
        return Ok(());
    }
    Err(format!("text:\n  upstream {upstream}\n  ours     {ours}"))
}

/// One of ours among what upstream would choose from.
pub fn placement(upstream: &Decision, node: &str) -> Result<Outcome, String> {
    if !upstream.fitting().contains(node) {
        return Err(format!(
            "ours took {node}, upstream fits {:?}",
            upstream.fitting()
        ));
    }
    let best = upstream.totals.values().max();
    if upstream.totals.get(node) != best {
        return Err(format!("ours took {node} of {:?}", upstream.totals));
    }
    Ok(Outcome::Placed)
}

fn scores(ours: &Explanation) -> BTreeMap<&str, i64> {
    let nodes = ours.nodes.iter();
    nodes
        .filter_map(|node| Some((node.node.as_str(), node.total()?)))
        .collect()
}

fn parts(ours: &Explanation) -> BTreeMap<&str, BTreeMap<&str, i64>> {
    let nodes = ours.nodes.iter().filter_map(|node| {
        let Verdict::Fits(scores) = &node.verdict else {
            return None;
        };
        let parts = scores
            .iter()
            .map(|one| (one.plugin, one.weight * one.score));
        Some((node.node.as_str(), parts.collect()))
    });
    nodes.collect()
}
