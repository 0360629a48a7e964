//! Strings: how long, and of which pattern.

use super::{Fault, Found, What};
use crate::{go_regexp, json};
use regex::Regex;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;

/// More compiled patterns are not kept: each may take megabytes.
const PATTERNS_MAX: usize = 64;

/// Compiled patterns of one schema; the text of the error for one that is none.
#[derive(Debug, Default)]
pub struct Patterns<'s>(RefCell<HashMap<&'s str, Result<Regex, String>>>);

impl<'s> Patterns<'s> {
    /// Why the text does not match.
    fn problem(&self, pattern: &'s str, text: &str) -> Option<String> {
        let mut known = self.0.borrow_mut();
        if known.len() >= PATTERNS_MAX && !known.contains_key(pattern) {
            known.clear();
        }
        let compiled = known
            .entry(pattern)
            .or_insert_with(|| go_regexp::compile(pattern));
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
    if let Some(problem) = patterns
        .problem(pattern, text)
        .filter(|_| !pattern.is_empty())
    {
        return Found::of(Fault::invalid(at, text, problem));
    }
    Found::default()
}
