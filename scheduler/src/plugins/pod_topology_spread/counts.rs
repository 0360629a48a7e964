//! How many like pods each domain has, for the filter.

use super::domains::{count, counts, has_all_keys, is_counted};
use crate::node_info::NodeInfo;
use crate::pod_info::{Memo, PodInfo, SpreadConstraint};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The domains of one constraint.
///
/// Invariant: `by_count` says how many domains of `by_value` have each count, so that the smallest is
/// known without a look at all of them, however often pods come and go.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    by_value: HashMap<Arc<str>, i64>,
    by_count: BTreeMap<i64, usize>,
}

impl Domains {
    fn add(&mut self, value: &str, count: i64) {
        let now = match self.by_value.get_mut(value) {
            Some(known) => {
                let before = *known;
                *known += count;
                let now = *known;
                self.one_less(before);
                now
            }
            None => {
                self.by_value.insert(value.into(), count);
                count
            }
        };
        *self.by_count.entry(now).or_default() += 1;
    }

    fn one_less(&mut self, count: i64) {
        if let Some(domains) = self.by_count.get_mut(&count) {
            *domains -= 1;
            if *domains == 0 {
                self.by_count.remove(&count);
            }
        }
    }

    pub fn count(&self, value: &str) -> i64 {
        self.by_value.get(value).copied().unwrap_or(0)
    }

    /// Too few domains are completed by empty ones.
    pub fn least(&self, min_domains: usize) -> i64 {
        if self.by_value.len() < min_domains {
            0
        } else {
            let least = self.by_count.keys().next();
            least.copied().unwrap_or(0)
        }
    }
}

#[derive(Clone, Debug)]
pub struct Counts {
    constraints: Arc<[SpreadConstraint]>,
    /// One for each constraint.
    domains: Vec<Domains>,
}

impl Counts {
    pub fn new(constraints: Arc<[SpreadConstraint]>, pod: &PodInfo, nodes: &[NodeInfo]) -> Self {
        let mut domains = vec![Domains::default(); constraints.len()];
        let mut like: Vec<_> = constraints.iter().map(|_| Memo::default()).collect();
        let nodes = nodes.iter().filter(|node| has_all_keys(node, &constraints));
        for node in nodes {
            for ((constraint, domains), like) in constraints.iter().zip(&mut domains).zip(&mut like)
            {
                if let Some(value) = node.label(&constraint.topology_key)
                    && is_counted(constraint, pod, node)
                {
                    domains.add(value, count(constraint, pod, node, like));
                }
            }
        }
        Self {
            constraints,
            domains,
        }
    }

    pub fn each(&self) -> impl Iterator<Item = (&SpreadConstraint, &Domains)> {
        self.constraints.iter().zip(&self.domains)
    }

    /// `other` came to the node (1) or left it (-1).
    pub fn add(&mut self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, change: i64) {
        if !has_all_keys(node, &self.constraints) {
            return;
        }
        for (constraint, domains) in self.constraints.iter().zip(&mut self.domains) {
            if let Some(value) = node.label(&constraint.topology_key)
                && counts(constraint, pod, other)
                && is_counted(constraint, pod, node)
            {
                domains.add(value, change);
            }
        }
    }
}
