//! Labels in one piece of memory, and selectors of them. Pure.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// No key and no value has it.
const BETWEEN: char = '\0';

/// Keys and values, one behind the other, ordered by key.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Labels(Box<str>);

impl Labels {
    pub fn of<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let sorted: BTreeMap<_, _> = labels.into_iter().collect();
        let mut text = String::new();
        for (key, value) in sorted {
            for part in [key, value] {
                text.push_str(part);
                text.push(BETWEEN);
            }
        }
        Self(text.into())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        let mut parts = self.0.split(BETWEEN);
        loop {
            let found = parts.next()?;
            let value = parts.next()?;
            if found == key {
                return Some(value);
            }
        }
    }

    /// What is kept for them.
    #[cfg(test)]
    pub fn byte_count(&self) -> usize {
        self.0.len()
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(labels: &BTreeMap<String, String>) -> Self {
        Self::of(labels.iter().map(|(key, value)| (&**key, &**value)))
    }
}

/// All of it must be met; nothing asked is met by everything. Ordered, so that two which ask the
/// same are the same.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Selector(Box<[Requirement]>);

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Requirement {
    pub key: Box<str>,
    pub is: Is,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Is {
    OneOf(Box<[Box<str>]>),
    /// Also met where there is no such label.
    NoneOf(Box<[Box<str>]>),
    There,
    Missing,
    /// What is not understood is met by nothing.
    Unknown,
}

impl Selector {
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut all: Vec<_> = requirements.into_iter().collect();
        all.sort();
        all.dedup();
        Self(all.into())
    }

    pub fn has(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.is_met(labels))
    }
}

impl Requirement {
    fn is_met(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_among = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|one| **one == *value))
        };
        match &self.is {
            Is::OneOf(values) => is_among(values),
            Is::NoneOf(values) => !is_among(values),
            Is::There => value.is_some(),
            Is::Missing => value.is_none(),
            Is::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests;
