//! How many worlds ended how.

use crate::compare::Outcome;
use std::collections::BTreeMap;

/// Between two lines of progress.
const TELL_EVERY: usize = 50;

pub struct Tally {
    what: &'static str,
    worlds: usize,
    outcomes: BTreeMap<&'static str, usize>,
    seconds: usize,
    differences: Vec<String>,
}

impl Tally {
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            worlds: 0,
            outcomes: BTreeMap::new(),
            seconds: 0,
            differences: Vec::new(),
        }
    }

    pub fn count(&mut self, outcome: Outcome) {
        *self.outcomes.entry(outcome.name()).or_default() += 1;
    }

    /// Something differed that may not when it is tried once more.
    pub fn second_look(&mut self) {
        self.seconds += 1;
    }

    /// `world` is what it takes to see it again by hand.
    #[allow(clippy::print_stderr)] // A run takes a while.
    pub fn differs(&mut self, seed: u64, difference: &str, world: &str) {
        let again = format!("CORACLE_DIFFERENTIAL_SEEDS={seed}..{}", seed + 1);
        let text = format!("{again}: {difference}");
        eprintln!("{text}\n{world}");
        self.differences.push(text);
    }

    #[allow(clippy::print_stderr)] // A run takes a while.
    pub fn world_done(&mut self) {
        self.worlds += 1;
        if self.worlds.is_multiple_of(TELL_EVERY) {
            eprintln!("{self}");
        }
    }

    #[allow(clippy::print_stderr)] // The report.
    pub fn must_be_alike(&self) {
        eprintln!("{self}");
        assert!(self.differences.is_empty(), "{:#?}", self.differences);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} worlds", self.what, self.worlds)?;
        for (name, count) in &self.outcomes {
            write!(f, ", {count} {name}")?;
        }
        let (seconds, differences) = (self.seconds, self.differences.len());
        write!(
            f,
            ", {seconds} of them at the second look, {differences} differences"
        )
    }
}
