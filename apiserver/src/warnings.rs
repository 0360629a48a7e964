//! Warnings of one request, which go out with a failure as with an answer.
//!
//! One set for a request, bounded as upstream bounds it: once the texts are longer together than a
//! client's HTTP library takes for a header, each is cut, and when even that is full the rest is
//! dropped.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

const WARNING: HeaderName = HeaderName::from_static("warning");
/// Characters of all texts together. Beyond, each is cut, and what comes later is dropped.
const CHARACTERS_MAX: usize = 4096;
/// Characters of one text that is cut.
const CUT_CHARACTERS: usize = 256;

/// Shared by its clones: what is told of a request anywhere goes out with its answer.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    /// Each text once, with its place in the order in which they came up.
    places: BTreeMap<String, usize>,
    /// Characters so far, of cut texts where they are cut.
    characters: usize,
    are_cut: bool,
}

/// The warnings of a request; of one that nobody answers, ones that nobody reads.
pub fn of(parts: &Parts) -> Warnings {
    parts.extensions.get().cloned().unwrap_or_default()
}

impl Warnings {
    pub fn add(&self, texts: impl IntoIterator<Item = String>) {
        let mut told = self.0.lock();
        texts.into_iter().for_each(|text| told.add(text));
    }

    /// In the order in which they came up.
    pub fn texts(&self) -> Vec<String> {
        let told = self.0.lock();
        let mut texts: Vec<(&String, &usize)> = told.places.iter().collect();
        texts.sort_unstable_by_key(|(_, place)| **place);
        let cut = |text: &String| text.chars().take(CUT_CHARACTERS).collect();
        let shown = |text: &String| {
            if told.are_cut {
                cut(text)
            } else {
                text.clone()
            }
        };
        texts.into_iter().map(|(text, _)| shown(text)).collect()
    }

    /// A `Warning` header each, as RFC 7234 and kubectl have it. What a header cannot carry is
    /// replaced.
    pub fn put(&self, headers: &mut HeaderMap) {
        for text in self.texts() {
            let clean = text.replace(char::is_control, "?");
            let quoted = clean.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
                headers.append(WARNING, value);
            }
        }
    }
}

impl Told {
    fn add(&mut self, text: String) {
        let is_full = self.are_cut && self.characters >= CHARACTERS_MAX;
        if text.is_empty() || is_full || self.places.contains_key(&text) {
            return;
        }
        let length = text.chars().count();
        self.places.insert(text, self.places.len());
        if self.are_cut {
            self.characters += length.min(CUT_CHARACTERS);
        } else if self.characters + length <= CHARACTERS_MAX {
            self.characters += length;
        } else {
            self.are_cut = true;
            let lengths = self.places.keys().map(|text| text.chars().count());
            self.characters = lengths.map(|length| length.min(CUT_CHARACTERS)).sum();
        }
    }
}

#[cfg(test)]
mod tests;
