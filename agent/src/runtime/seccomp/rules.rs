//! What a profile means for one architecture: every number of a call has an outcome. Pure.
//!
//! A rule without comparisons stands over those with some; among those the first that holds
//! counts. Calls newer than all that a refusing profile knows do not exist (`ENOSYS`), so that
//! libraries fall back to older ones instead of taking the refusal for an answer.

use super::architecture::Architecture;
use super::profile::{Action, Comparison, Resolved};
use std::collections::BTreeMap;

const ENOSYS: u32 = 38;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    Always(Action),
    /// The first whose comparisons all hold, else the last.
    First(Vec<(Vec<Comparison>, Action)>, Action),
}

/// The calls of one architecture: from each number to the next one's, sorted, the first is 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Section {
    pub architecture: Architecture,
    pub ranges: Vec<(u32, Outcome)>,
}

pub fn of_architecture(architecture: Architecture, profile: &Resolved) -> Section {
    let default = profile.default_action;
    let mut calls: BTreeMap<u32, Outcome> = BTreeMap::new();
    for rule in &profile.rules {
        // One that says what is said anyway adds nothing, but its calls are known.
        for number in rule
            .names
            .iter()
            .filter_map(|name| architecture.number(name))
        {
            let known = calls
                .entry(number)
                .or_insert_with(|| Outcome::First(Vec::new(), default));
            if rule.action == default {
                continue;
            }
            match known {
                Outcome::Always(_) => {}
                Outcome::First(..) if rule.comparisons.is_empty() => {
                    *known = Outcome::Always(rule.action);
                }
                Outcome::First(all, _) => {
                    let comparisons = rule.comparisons.iter();
                    let fitted = comparisons.map(|one| fitted(*one, architecture));
                    all.push((fitted.collect(), rule.action));
                }
            }
        }
    }
    let mut ranges: Vec<(u32, Outcome)> = Vec::new();
    let mut push = |start: u32, outcome: Outcome| {
        if ranges.last().is_none_or(|(_, last)| *last != outcome) {
            ranges.push((start, outcome));
        }
    };
    let mut next = 0;
    for (number, outcome) in calls {
        if number > next {
            push(next, Outcome::Always(default));
        }
        push(number, outcome);
        next = number + 1;
    }
    let beyond = if default.is_refusal() && next > 0 {
        Action::errno(ENOSYS)
    } else {
        default
    };
    push(next, Outcome::Always(beyond));
    Section {
        architecture,
        ranges,
    }
}

/// Where arguments have 32 bits, what is compared with them has no more.
fn fitted(comparison: Comparison, architecture: Architecture) -> Comparison {
    if !architecture.is_narrow() {
        return comparison;
    }
    Comparison {
        value: comparison.value & u64::from(u32::MAX),
        value_two: comparison.value_two & u64::from(u32::MAX),
        ..comparison
    }
}
