//! Which problems are told of, and when. Pure.

use super::plan::Problem;
use std::collections::{BTreeMap, BTreeSet};

/// How many ticks one waits that mostly passes by itself; the first may come at once.
const WAITS_TICKS: u32 = 2;

#[derive(Debug, Default)]
pub struct Telling {
    told: BTreeSet<Problem>,
    /// Those that are told of if they do not pass, and for how many ticks they have been there.
    waiting: BTreeMap<Problem, u32>,
}

impl Telling {
    /// What is to be told of these, which are all there are: each once, until it is gone.
    pub fn news(&mut self, problems: BTreeSet<Problem>) -> Vec<Problem> {
        let ticks = |problem: &Problem| self.waiting.get(problem).copied().unwrap_or_default();
        let is_early = |problem: &Problem| {
            let is_new = ticks(problem) < WAITS_TICKS && !self.told.contains(problem);
            problem.is_early() && is_new
        };
        let (early, known): (BTreeSet<_>, BTreeSet<_>) = problems.into_iter().partition(is_early);
        let waiting = early.into_iter().map(|problem| (ticks(&problem), problem));
        let waiting = waiting.map(|(ticks, problem)| (problem, ticks)).collect();
        let news = known.difference(&self.told).cloned().collect();
        self.waiting = waiting;
        self.told = known;
        news
    }

    /// Ticks are to be told, and problems looked at again with each.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn tick(&mut self) {
        for ticks in self.waiting.values_mut() {
            *ticks += 1;
        }
    }

    /// Some may have passed without a change that is heard of.
    pub fn may_pass(&self) -> bool {
        self.told.iter().any(Problem::may_pass)
    }

    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
