//! Why no node fits, in the one sentence that users know from upstream.

use crate::framework::{Reason, Refusal, RefusedAll};
use crate::pod_info::PodInfo;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    nodes: usize,
    reasons: HashMap<Reason, usize>,
    plugins: BTreeSet<&'static str>,
    /// Ends the cycle before any node was looked at.
    for_all: Option<Reason>,
    pub(super) post_filter: Option<String>,
}

impl Diagnosis {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.plugins.insert(refusal.plugin);
        if let Some(reason) = refusal.verdict.into_reason() {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    pub(super) fn refuse_all(&mut self, refused: RefusedAll) {
        self.plugins.extend(refused.plugins);
        self.for_all = refused.verdict.into_reason();
    }

    /// Other nodes might do if these plugins let them.
    pub(super) fn leave_out(&mut self, by: &[&'static str]) {
        self.plugins.extend(by);
    }

    /// Who refused: what must change for the pod to fit.
    pub fn plugins(&self) -> Vec<&'static str> {
        self.plugins.iter().copied().collect()
    }

    /// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`
    pub fn message(&self, pod: &PodInfo) -> String {
        let mut text = format!("0/{} nodes are available:", self.nodes);
        if self.nodes == 0 && self.for_all.is_none() {
            return "no nodes available to schedule pods".to_owned();
        }
        if let Some(reason) = &self.for_all {
            reason.each(pod, |one| text.push_str(&format!(" {one}.")));
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (reason, count) in &self.reasons {
            reason.each(pod, |one| *counts.entry(one).or_default() += count);
        }
        if !counts.is_empty() {
            let mut parts: Vec<String> = counts
                .iter()
                .map(|(reason, count)| format!("{count} {reason}"))
                .collect();
            parts.sort();
            text.push_str(&format!(" {}.", parts.join(", ")));
        }
        if let Some(more) = &self.post_filter {
            text.push_str(&format!(" {more}."));
        }
        text
    }
}
