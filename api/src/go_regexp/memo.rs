//! Patterns that are matched again and again, each compiled once.

use super::sized;
use regex::Regex;
use std::collections::HashMap;

/// What different patterns compile to, together: about a tenth of a second.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Patterns of one evaluation. When there has been too much to compile, no new one is.
#[derive(Debug, Default)]
pub struct Memo {
    compiled: HashMap<String, Result<Regex, String>>,
    bytes: usize,
}

impl Memo {
    /// Whether a text matches. The error is worded as Go's, where Go has one.
    pub fn matches(&mut self, text: &str, pattern: &str) -> Result<bool, String> {
        if !self.compiled.contains_key(pattern) {
            if self.bytes > BYTES_MAX {
                return Err("the patterns take too long to compile".to_owned());
            }
            let (bytes, compiled) = sized(pattern);
            self.bytes += bytes;
            self.compiled.insert(pattern.to_owned(), compiled);
        }
        match &self.compiled[pattern] {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(why) => Err(why.clone()),
        }
    }
}
