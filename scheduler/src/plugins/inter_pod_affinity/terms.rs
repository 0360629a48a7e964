//! Terms whose namespaces are all named: what their selectors of namespaces choose is added.

use crate::pod_info::{AffinityTerm, Traits};
use crate::selector::{self, Selector};
use crate::views::Namespaces;
use std::sync::Arc;

/// An empty selector of namespaces stays: it needs no names.
pub fn resolve(term: &AffinityTerm, namespaces: &Namespaces) -> AffinityTerm {
    let mut resolved = term.clone();
    if selects_some(term) {
        namespaces.each(|key, labels| {
            if selector::matches(&term.namespace_selector, Some(labels)) {
                resolved.namespaces.push(key.name.clone());
            }
        });
        resolved.namespace_selector = Selector::nothing();
    }
    resolved
}

fn selects_some(term: &AffinityTerm) -> bool {
    !term.namespace_selector.requirements().is_empty()
}

pub fn resolved(terms: &[AffinityTerm], namespaces: &Namespaces) -> Arc<[AffinityTerm]> {
    terms.iter().map(|term| resolve(term, namespaces)).collect()
}

/// As `resolved`, sharing what needs no change.
pub fn shared(terms: &Arc<[AffinityTerm]>, namespaces: &Namespaces) -> Arc<[AffinityTerm]> {
    if terms.iter().any(selects_some) {
        resolved(terms, namespaces)
    } else {
        Arc::clone(terms)
    }
}

/// Whether a pod meets all of some terms; where there are none, nobody does.
pub fn meets_all(terms: &[AffinityTerm], pod: &Traits) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod, None))
}
