//! What the kernel has for all Services, and the steps of a batch from there to what it is to
//! have. Pure.
//!
//! Invariant: from `Changes` of each call, taken in order, follows what `whole` gives. A chain that
//! nothing needs any more is emptied at once and deleted later (`Stale`).

use super::claims::{Claimant, Claims, Touched};
use super::places::arrange;
use super::plan::{List, Plan, Port};
use super::steps::{Chain, Element, Rule, Step, Target};
use crate::network::stale::Stale;
use crate::network::view::Key;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct State {
    plans: BTreeMap<Key, Plan>,
    claims: Claims,
    stale: Stale<Chain>,
}

/// What one batch is to do, gathered over Services.
#[derive(Debug, Default)]
pub struct Changes {
    chains: Vec<Step>,
    targets: Vec<Step>,
    rules: Vec<Step>,
    emptied: Vec<Step>,
    touched: Touched,
}

impl State {
    /// A plan without ports stands for a Service that is not routed.
    pub fn update(&mut self, key: &Key, plan: Plan, changes: &mut Changes) {
        let mut plan = plan;
        let old = self.plans.remove(key).unwrap_or_default();
        for (element, _) in old.elements() {
            if plan.value(element).is_none() {
                self.claims.release(*element, key, &mut changes.touched);
            }
        }
        for (element, value) in plan.elements() {
            let is_foreign = plan.is_foreign(element);
            if old.value(element) != Some(value) || old.is_foreign(element) != is_foreign {
                let key = key.clone();
                let claimant = Claimant { is_foreign, key };
                self.claims
                    .claim(*element, claimant, value.clone(), &mut changes.touched);
            }
        }
        self.update_ports(key, &old.ports, &mut plan.ports, changes);
        if !plan.ports.is_empty() {
            self.plans.insert(key.clone(), plan);
        }
    }

    fn update_ports(&mut self, key: &Key, old: &[Port], new: &mut [Port], changes: &mut Changes) {
        let of_old: BTreeMap<_, _> = old.iter().map(|port| (&port.id, port)).collect();
        let mut chains_before = BTreeMap::new();
        for port in old {
            chains_before.extend(port.chains(key));
            if new.binary_search_by(|of| of.id.cmp(&port.id)).is_err() {
                take_away(&port.cluster, port.affinity_seconds, changes);
                take_away(&port.local, port.affinity_seconds, changes);
            }
        }
        for port in new {
            let before = of_old.get(&port.id);
            let was_sticky = before.is_some_and(|of| of.affinity_seconds.is_some());
            let is_sticky = port.affinity_seconds.is_some();
            let lists = [
                (before.map(|of| &of.cluster), &mut port.cluster),
                (before.map(|of| &of.local), &mut port.local),
            ];
            for (before, list) in lists {
                let before = before.map_or(&[][..], |of| &of.targets);
                let (places, steps) = arrange(list.id, before, &list.targets);
                changes.targets.extend(steps);
                list.targets = places;
                changes.members(list, (was_sticky, before), is_sticky);
            }
            for (chain, rules) in port.chains(key) {
                if chains_before.remove(&chain).as_ref() != Some(&rules) {
                    self.set_rules(chain, rules, changes);
                }
            }
        }
        for chain in chains_before.into_keys() {
            changes
                .emptied
                .push(Step::SetRules(chain.clone(), Vec::new()));
            self.stale.add(chain);
        }
    }

    fn set_rules(&mut self, chain: Chain, rules: Vec<Rule>, changes: &mut Changes) {
        self.stale.remove(&chain);
        changes.chains.push(Step::AddChain(chain.clone()));
        changes.rules.push(Step::SetRules(chain, rules));
    }

    /// The steps in an order that the kernel takes: nothing leads to what is not there.
    pub fn steps(&self, changes: Changes) -> Vec<Step> {
        let mut steps = changes.chains;
        steps.extend(changes.targets);
        steps.extend(changes.rules);
        let mut coming = Vec::new();
        for (element, before) in changes.touched {
            let value = self.claims.value(&element);
            if before.as_ref() == value {
                continue;
            }
            if let Some(before) = before {
                steps.push(Step::Delete(element, before));
            }
            coming.extend(value.map(|value| Step::Add(element, value.clone())));
        }
        steps.extend(coming);
        steps.extend(changes.emptied);
        steps
    }

    /// All that the kernel is to have, from nothing. Chains of Services that are there already and
    /// are not of it are to be stale from now on: `there` has the names of all.
    pub fn whole(&mut self, there: &[&str]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut rules = Vec::new();
        let mut wanted = BTreeSet::new();
        for (key, plan) in &self.plans {
            for port in &plan.ports {
                for list in [&port.cluster, &port.local] {
                    add_all(list, port.affinity_seconds.is_some(), &mut steps);
                }
                for (chain, of) in port.chains(key) {
                    wanted.insert(chain.clone());
                    rules.push(Step::SetRules(chain, of));
                }
            }
        }
        let there = there.iter().map(|name| Chain::from(*name));
        self.stale
            .replace(there.filter(|chain| !wanted.contains(chain)));
        let empty = self.stale.fresh().cloned();
        let empty = empty.map(|chain| Step::SetRules(chain, Vec::new()));
        let chains = wanted.into_iter().map(Step::AddChain);
        let elements = self.claims.all();
        let elements = elements.map(|(element, value)| Step::Add(*element, value.clone()));
        let mut all: Vec<Step> = chains.collect();
        all.extend(empty);
        all.append(&mut steps);
        all.append(&mut rules);
        all.extend(elements);
        all
    }

    /// Deletes the chains that were empty at the last sweep already.
    pub fn sweep(&mut self) -> Vec<Step> {
        let ripe = self.stale.sweep();
        ripe.into_iter().map(Step::DeleteChain).collect()
    }

    /// Whether a sweep is to come.
    pub fn has_stale(&self) -> bool {
        self.stale.has_any()
    }

    /// Whether the Service says where this way leads, or that it is closed: of two that claim it
    /// one does.
    pub fn holds(&self, key: &Key, way: &Element) -> bool {
        let owner = self.claims.owner(way);
        owner.or_else(|| self.claims.owner(&way.closed()?)) == Some(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.plans.keys()
    }
}

impl Changes {
    /// What affinity asks about is kept for Services that have it alone.
    fn members(&mut self, list: &List, before: (bool, &[Target]), is_sticky: bool) {
        let of = |is_kept: bool, targets: &[Target]| -> BTreeSet<Target> {
            let targets = targets.iter().copied();
            targets.filter(|_| is_kept).collect()
        };
        let (was, is) = (of(before.0, before.1), of(is_sticky, &list.targets));
        let gone = was.difference(&is).copied();
        self.targets
            .extend(gone.map(|target| Step::DeleteMember(list.id, target)));
        let new = is.difference(&was).copied();
        self.targets
            .extend(new.map(|target| Step::AddMember(list.id, target)));
    }
}

fn take_away(list: &List, affinity_seconds: Option<u32>, changes: &mut Changes) {
    let (_, steps) = arrange(list.id, &list.targets, &[]);
    changes.targets.extend(steps);
    if affinity_seconds.is_some() {
        let targets = list.targets.iter();
        let steps = targets.map(|target| Step::DeleteMember(list.id, *target));
        changes.targets.extend(steps);
    }
}

fn add_all(list: &List, is_sticky: bool, steps: &mut Vec<Step>) {
    let (_, all) = arrange(list.id, &[], &list.targets);
    steps.extend(all);
    if is_sticky {
        let members = list.targets.iter();
        steps.extend(members.map(|target| Step::AddMember(list.id, *target)));
    }
}

#[cfg(test)]
mod tests;
