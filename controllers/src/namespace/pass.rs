//! What a pass over a namespace came to, and what its conditions tell of it. Pure.

use std::collections::BTreeMap;

use kube::core::ObjectList;

use super::conditions::{self, Trouble};
use crate::discovery::{Discovered, Meta, Resource};

/// What upstream supposes that finalizers take.
const FINALIZER_ESTIMATE_SECONDS: u64 = 15;

/// Objects of one resource that are still there.
#[derive(Clone, Debug)]
pub(super) struct Remaining {
    pub(super) resource: Resource,
    pub(super) names: Vec<String>,
    /// Where a watch goes on from the list.
    pub(super) resource_version: String,
    pub(super) finalizers: BTreeMap<String, usize>,
}

/// What a pass came to.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) remaining: Vec<Remaining>,
    /// How long what is left will take, if that is known.
    pub(super) estimate_seconds: u64,
    discovery_failures: usize,
    discovery_text: Option<String>,
    parsing_text: Option<String>,
    content_errors: Vec<String>,
}

impl Pass {
    pub(super) fn new(discovered: &Discovered) -> Self {
        let malformed = discovered.malformed.iter();
        let malformed = malformed.map(|text| format!("unexpected GroupVersion string: {text}"));
        let malformed: Vec<_> = malformed.collect();
        Self {
            discovery_failures: discovered.failures.len(),
            discovery_text: discovered.failure_text(),
            parsing_text: (!malformed.is_empty()).then(|| malformed.join(", ")),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, emptied: Emptied) {
        self.estimate_seconds = self.estimate_seconds.max(emptied.estimate_seconds);
        self.remaining.extend(emptied.remaining);
        self.content_errors.extend(emptied.error);
        self.content_errors.sort_unstable();
    }

    /// Everything that went wrong, for the log and for trying again.
    pub(super) fn errors_text(&self) -> Option<String> {
        let all = self.discovery_text.iter().chain(&self.parsing_text);
        let all: Vec<_> = all.chain(&self.content_errors).cloned().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// What the namespace's conditions tell of it.
    pub(super) fn conditions(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let mut tell = |condition, reason, message| {
            troubles.push(Trouble {
                condition,
                reason,
                message,
            });
        };
        if let Some(text) = &self.discovery_text {
            let count = self.discovery_failures;
            let message = format!("Discovery failed for some groups, {count} failing: {text}");
            tell(conditions::DISCOVERY, "DiscoveryFailed", message);
        }
        if let Some(text) = &self.parsing_text {
            tell(
                conditions::PARSING,
                "GroupVersionParsingFailed",
                text.clone(),
            );
        }
        if !self.content_errors.is_empty() {
            let (count, all) = (self.content_errors.len(), self.content_errors.join(", "));
            let message = format!("Failed to delete all resource types, {count} remaining: {all}");
            tell(conditions::CONTENT, "ContentDeletionFailed", message);
        }
        if !self.remaining.is_empty() {
            let message = format!("Some resources are remaining: {}", self.remaining_text());
            tell(conditions::REMAINING, "SomeResourcesRemain", message);
        }
        let finalizers = self.finalizers_text();
        if !finalizers.is_empty() {
            let message =
                format!("Some content in the namespace has finalizers remaining: {finalizers}");
            tell(conditions::FINALIZERS, "SomeFinalizersRemain", message);
        }
        troubles
    }

    fn remaining_text(&self) -> String {
        let each = self.remaining.iter().map(|left| {
            let (api, count) = (&left.resource.api, left.names.len());
            format!(
                "{}.{} has {count} resource instances",
                api.plural, api.group
            )
        });
        let mut each: Vec<_> = each.collect();
        each.sort_unstable();
        each.join(", ")
    }

    fn finalizers_text(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (finalizer, count) in self.remaining.iter().flat_map(|left| &left.finalizers) {
            *counts.entry(finalizer).or_default() += count;
        }
        let each = counts.iter();
        let each = each.map(|(name, count)| format!("{name} in {count} resource instances"));
        let mut each: Vec<_> = each.collect();
        each.sort_unstable();
        each.join(", ")
    }
}

/// What came of one resource.
#[derive(Debug, Default)]
pub(super) struct Emptied {
    pub(super) remaining: Option<Remaining>,
    pub(super) estimate_seconds: u64,
    pub(super) error: Option<String>,
}

/// What is left says how long it may take, or that something is wrong.
pub(super) fn judge(
    resource: &Resource,
    namespace: &str,
    list: &ObjectList<Meta>,
    estimate_seconds: u64,
) -> Emptied {
    if list.items.is_empty() {
        return Emptied::default();
    }
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for item in &list.items {
        for finalizer in item.metadata.finalizers.iter().flatten() {
            *finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
    let names = list.items.iter();
    let names = names.map(|item| item.metadata.name.clone().unwrap_or_default());
    let expected = estimate_seconds > 0 || !finalizers.is_empty();
    let estimate_seconds = if estimate_seconds == 0 && expected {
        FINALIZER_ESTIMATE_SECONDS
    } else {
        estimate_seconds
    };
    let error = (!expected).then(|| {
        let resource = resource.text();
        format!("unexpected items still remain in namespace: {namespace} for gvr: {resource}")
    });
    Emptied {
        estimate_seconds,
        error,
        remaining: Some(Remaining {
            resource: resource.clone(),
            names: names.collect(),
            resource_version: list.metadata.resource_version.clone().unwrap_or_default(),
            finalizers,
        }),
    }
}

#[cfg(test)]
mod tests;
