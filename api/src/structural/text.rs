//! Strings: how long, and of which pattern.

use super::{Fault, Found, What};
use crate::cel::budget::Budget;
use crate::json;
use regex::Regex;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// More compiled patterns are not kept: each may take megabytes.
const PATTERNS_MAX: usize = 64;

/// Compiled patterns of one schema, which outlive the object: compiled by the first who needs them.
#[derive(Clone, Debug, Default)]
pub struct KnownPatterns(Arc<Mutex<HashMap<String, Result<Regex, String>>>>);

impl KnownPatterns {
    /// A clone of it shares what was compiled.
    fn get(&self, pattern: &str, budget: &Budget) -> Result<Regex, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(pattern) {
            return compiled.clone();
        }
        let compiled = budget.compile(pattern);
        if known.len() < PATTERNS_MAX {
            known.insert(pattern.to_owned(), compiled.clone());
        }
        compiled
    }
}

/// Compiled patterns of one object; the text of the error for one that is none.
#[derive(Debug, Default)]
pub struct Patterns<'s> {
    known: RefCell<HashMap<&'s str, Result<Regex, String>>>,
    of_schema: Option<KnownPatterns>,
    budget: Budget,
}

impl<'s> Patterns<'s> {
    /// What is compiled counts, each time that it is.
    pub fn within(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            ..Self::default()
        }
    }

    /// Those of a schema that checks many objects.
    pub fn known(known: &KnownPatterns) -> Self {
        Self {
            of_schema: Some(known.clone()),
            ..Self::default()
        }
    }

    /// Why the text does not match.
    fn problem(&self, pattern: &'s str, text: &str) -> Option<String> {
        let mut known = self.known.borrow_mut();
        if known.len() >= PATTERNS_MAX && !known.contains_key(pattern) {
            known.clear();
        }
        let compiled = known
            .entry(pattern)
            .or_insert_with(|| match &self.of_schema {
                Some(of_schema) => of_schema.get(pattern, &self.budget),
                None => self.budget.compile(pattern),
            });
        match compiled {
            Ok(regex) if regex.is_match(text) => None,
            Ok(_) => Some(format!("should match '{pattern}'")),
            Err(error) => Some(format!(
                "should match '{pattern}, but pattern is invalid: {error}'"
            )),
        }
    }
}

pub fn check<'s>(schema: &'s Value, text: &str, at: &str, patterns: &Patterns<'s>) -> Found {
    let size = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = json::int(schema, "maxLength").filter(|max| size > *max) {
        let message = format!("should be at most {max} chars long");
        return Found::of(Fault::new(at, What::TooLong { max }, message));
    }
    if let Some(min) = json::int(schema, "minLength").filter(|min| size < *min) {
        let message = format!("should be at least {min} chars long");
        return Found::of(Fault::invalid(at, text, message));
    }
    let pattern = json::text(schema, "pattern");
    if !pattern.is_empty()
        && let Some(problem) = patterns.problem(pattern, text)
    {
        return Found::of(Fault::invalid(at, text, problem));
    }
    Found::default()
}
