//! What the expressions and patterns of one object may take together to be checked.
//!
//! A request holds a worker while its object is checked, and an object has room for thousands of
//! expressions. All of one object share a budget: steps, for reading and for types, and the bytes
//! that patterns compile to, each of which counts once, and once more each time that it is compiled
//! to be matched with. When either is spent, no more is looked at.

use crate::go_regexp;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// About a second in a release build. The largest definitions of custom resources in use take
/// less than a tenth.
const STEPS_MAX: usize = 4_000_000;
/// For a stack, and for what an expression may name.
const STEPS_OF_ONE: usize = 400;
/// The parser takes as long for a byte as the checker for so many parts of types.
const STEPS_OF_BYTE: usize = 18;
/// What the parser does with a list is quadratic: the square of its commas counts by this part.
const COMMAS_SQUARED: usize = 256;
/// What all different patterns compile to: about half a second in a release build.
const PATTERN_BYTES_MAX: usize = 64 * 1024 * 1024;

const SPENT: &str = "the expressions of one object take too long to check";
pub const PATTERNS_SPENT: &str = "the patterns of one object take too long to compile";

/// Shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Mutex<Spent>>);

#[derive(Debug, Default)]
struct Spent {
    steps: usize,
    pattern_bytes: usize,
    /// What is wrong with each pattern so far. No more than the bytes have room for.
    patterns: BTreeMap<String, Result<(), String>>,
}

impl Budget {
    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what reading an expression takes; why it is not to be read.
    pub fn expression(&self, text: &str) -> Result<(), &'static str> {
        let commas = text.bytes().filter(|byte| *byte == b',').count();
        let of_lists = commas * commas / COMMAS_SQUARED;
        self.take(STEPS_OF_ONE + STEPS_OF_BYTE * text.len() + of_lists)
    }

    /// Takes steps, if so many are left.
    pub fn take(&self, count: usize) -> Result<(), &'static str> {
        let mut spent = self.spent();
        spent.steps = spent.steps.saturating_add(count);
        if spent.steps > STEPS_MAX {
            return Err(SPENT);
        }
        Ok(())
    }

    /// Counts steps that have been taken. What is too much is told of the next expression.
    pub fn add(&self, count: usize) {
        let mut spent = self.spent();
        spent.steps = spent.steps.saturating_add(count);
    }

    /// What is wrong with a pattern, in the words of Go.
    pub fn pattern(&self, text: &str) -> Result<(), String> {
        let mut spent = self.spent();
        if let Some(known) = spent.patterns.get(text) {
            return known.clone();
        }
        let problem = spent.compile(text)?.map(drop);
        spent.patterns.insert(text.to_owned(), problem.clone());
        problem
    }

    /// A pattern to be matched with. Each time counts anew.
    pub fn compile(&self, text: &str) -> Result<Regex, String> {
        self.spent().compile(text)?
    }
}

impl Spent {
    /// The outer error is of the budget, the inner one of the pattern.
    fn compile(&mut self, text: &str) -> Result<Result<Regex, String>, String> {
        if self.pattern_bytes > PATTERN_BYTES_MAX {
            return Err(PATTERNS_SPENT.to_owned());
        }
        let (size, compiled) = go_regexp::sized(text);
        self.pattern_bytes += size;
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests;
