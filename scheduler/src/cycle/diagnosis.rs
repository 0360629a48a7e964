//! Why no node fits, in the one sentence that users know from upstream.

use crate::framework::{Nomination, Reason, Refusal, RefusedAll, Remedy, Verdict};
use crate::pod_info::PodInfo;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    nodes: usize,
    reasons: HashMap<Reason, usize>,
    plugins: BTreeSet<&'static str>,
    /// Whose PreFilter ended the cycle.
    pub(super) refused_by: Option<&'static str>,
    /// Ends the cycle before any node was looked at.
    for_all: Option<Reason>,
    /// Places of the nodes that taking pods off may help with, until PostFilter asks for them.
    pub(super) helpful: Vec<usize>,
    pub(super) remedy: Remedy,
}

impl Diagnosis {
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// The node at `place` is refused.
    pub fn refuse(&mut self, place: usize, refusal: Refusal) {
        self.plugins.insert(refusal.plugin);
        if matches!(refusal.verdict, Verdict::Unschedulable(_)) {
            self.helpful.push(place);
        }
        if let Some(reason) = refusal.verdict.into_reason() {
            self.count(1, reason);
        }
    }

    /// `nodes` more have this against them.
    pub fn count(&mut self, nodes: usize, reason: Reason) {
        if nodes > 0 {
            *self.reasons.entry(reason).or_default() += nodes;
        }
    }

    pub(super) fn refuse_all(&mut self, refused: RefusedAll) {
        self.refused_by = refused.plugins.last().copied();
        self.plugins.extend(refused.plugins);
        self.for_all = refused.verdict.into_reason();
    }

    /// Other nodes might do if these plugins let them.
    pub(super) fn leave_out(&mut self, nodes: usize, by: &[&'static str]) {
        self.plugins.extend(by);
        let mut names = by.to_vec();
        names.sort_unstable();
        let text = format!("node(s) didn't satisfy plugin(s) [{}]", names.join(" "));
        self.count(nodes, Reason::Told(text.into()));
    }

    /// Takes over what a plugin does about it; true when that ends the search for a remedy.
    pub(super) fn remedied_by(&mut self, remedy: Remedy) -> bool {
        if remedy.is_final {
            self.remedy = remedy;
            return true;
        }
        let release = self.remedy.release.take().or(remedy.release.clone());
        if remedy.is_found() {
            self.remedy = Remedy { release, ..remedy };
            return true;
        }
        self.remedy.release = release;
        if remedy.nomination != Nomination::Keep {
            self.remedy.nomination = remedy.nomination;
        }
        if !self.remedy.message.is_empty() && !remedy.message.is_empty() {
            self.remedy.message.push_str(", ");
        }
        self.remedy.message.push_str(&remedy.message);
        false
    }

    /// What is done about it.
    pub fn remedy(&self) -> &Remedy {
        &self.remedy
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
        if !self.remedy.message.is_empty() {
            text.push_str(&format!(" {}", self.remedy.message));
        }
        text
    }
}
