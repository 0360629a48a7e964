//! The objects of a page, as stored bytes, some at a time.

use super::token::Token;
use crate::options::{ListOptions, Selection};
use crate::registry;
use crate::verbs::asked::Asked;
use bytes::Bytes;
use coracle_api::resource::Resource;
use coracle_store::{Revision, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;

/// A step over a collection ends after this many objects or bytes: one search each.
const STEP_OBJECTS_MAX: usize = 256;
const STEP_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub struct Page {
    pub revision: Revision,
    pub items: Items,
    pub next: Option<String>,
    pub remaining: Option<usize>,
}

#[derive(Debug)]
pub enum Items {
    /// Those that a limit let through.
    Some(std::vec::IntoIter<Bytes>),
    /// All that are chosen, found on the way.
    All(Walk),
}

impl Page {
    pub fn new(asked: &Asked<'_>, options: &ListOptions, snapshot: Snapshot, after: &str) -> Self {
        let revision = snapshot.revision();
        let (next, remaining) = (None, None);
        if let Some(items) = one_by_name(asked, options, &snapshot, after) {
            let items = Items::Some(items.into_iter());
            return Self {
                revision,
                items,
                next,
                remaining,
            };
        }
        match options.page_limit() {
            Some(limit) => limited(asked, options, &snapshot, after, limit),
            None => {
                let prefix = registry::prefix(asked.namespace());
                let selection = options.selection.clone();
                let walk = Walk::new(asked.resource, selection, snapshot, prefix, after);
                Self {
                    revision,
                    items: Items::All(walk),
                    next,
                    remaining,
                }
            }
        }
    }

    /// The list's `metadata`.
    pub fn metadata(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// A selector of one name in one namespace needs no walk.
fn one_by_name(
    asked: &Asked<'_>,
    options: &ListOptions,
    snapshot: &Snapshot,
    after: &str,
) -> Option<Vec<Bytes>> {
    let name = options.selection.fields.exact("metadata.name")?;
    if !after.is_empty() || asked.resource.is_namespaced() == asked.namespace().is_empty() {
        return None;
    }
    let entry = snapshot.get(&registry::key(asked.namespace(), name));
    let value = entry.map(|entry| &entry.value);
    let chosen = value.filter(|value| options.selection.matches_stored(asked.resource, value));
    Some(chosen.cloned().into_iter().collect())
}

fn limited(
    asked: &Asked<'_>,
    options: &ListOptions,
    snapshot: &Snapshot,
    after: &str,
    limit: usize,
) -> Page {
    let selection = &options.selection;
    let prefix = registry::prefix(asked.namespace());
    let mut items: Vec<Bytes> = Vec::new();
    let mut last: Option<&Arc<str>> = None;
    let mut range = snapshot.range_from(after, &prefix);
    let mut more = false;
    for (key, entry) in range.by_ref() {
        if !selection.matches_stored(asked.resource, &entry.value) {
            continue;
        }
        if items.len() == limit {
            more = true;
            break;
        }
        items.push(entry.value.clone());
        last = Some(key);
    }
    let remaining = (more && selection.is_all()).then(|| range.count() + 1);
    let last = last.filter(|_| more).map_or("", |key| &**key);
    let next = more.then(|| {
        let within = last.strip_prefix(&prefix).unwrap_or(last);
        Token::encode(Some(snapshot.revision()), within)
    });
    Page {
        revision: snapshot.revision(),
        items: Items::Some(items.into_iter()),
        next,
        remaining,
    }
}

/// On its way over the chosen objects of a snapshot.
#[derive(Debug)]
pub struct Walk {
    resource: &'static Resource,
    selection: Selection,
    snapshot: Snapshot,
    prefix: String,
    after: Arc<str>,
    ended: bool,
}

impl Walk {
    pub fn new(
        resource: &'static Resource,
        selection: Selection,
        snapshot: Snapshot,
        prefix: String,
        after: &str,
    ) -> Self {
        Self {
            resource,
            selection,
            snapshot,
            prefix,
            after: after.into(),
            ended: false,
        }
    }

    /// The next objects; `None` at the end. An empty step is one in which none was chosen.
    pub fn step(&mut self) -> Option<Vec<Bytes>> {
        if self.ended {
            return None;
        }
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut last = None;
        let range = self.snapshot.range_from(&self.after, &self.prefix);
        for (seen, (key, entry)) in range.enumerate() {
            if self.selection.matches_stored(self.resource, &entry.value) {
                bytes += entry.value.len();
                items.push(entry.value.clone());
            }
            if seen + 1 == STEP_OBJECTS_MAX || bytes >= STEP_BYTES_MAX {
                last = Some(Arc::clone(key));
                break;
            }
        }
        match last {
            Some(last) => self.after = last,
            None => self.ended = true,
        }
        Some(items)
    }
}

impl Items {
    /// All objects of the page at once.
    pub fn all(&mut self) -> Vec<Bytes> {
        let mut all = Vec::new();
        while let Some(step) = self.step() {
            all.extend(step);
        }
        all
    }

    /// Takes all objects of the page at once, lower ranks first; those of one rank stay in order.
    pub fn sort_by_rank(&mut self, rank: impl Fn(&Bytes) -> i64) {
        let mut all = self.all();
        all.sort_by_cached_key(rank);
        *self = Self::Some(all.into_iter());
    }

    /// The next objects; `None` at the end.
    pub fn step(&mut self) -> Option<Vec<Bytes>> {
        match self {
            Self::All(walk) => walk.step(),
            Self::Some(items) => {
                let step: Vec<Bytes> = items.by_ref().take(STEP_OBJECTS_MAX).collect();
                (!step.is_empty()).then_some(step)
            }
        }
    }
}
