//! Which rules an aggregated ClusterRole should have. Pure.

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use crate::labels::Selector;

/// A selector has an operator that is none; validation keeps it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadSelector;

/// The rules to write; nothing when the role is not aggregated or has them already. Each rule is
/// there once, by selector, then by name of the role that it is from.
pub(crate) fn plan(
    role: &ClusterRole,
    mut all: Vec<Arc<ClusterRole>>,
) -> Result<Option<Vec<PolicyRule>>, BadSelector> {
    let Some(aggregation) = &role.aggregation_rule else {
        return Ok(None);
    };
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut gathered: Vec<PolicyRule> = Vec::new();
    for selector in aggregation.cluster_role_selectors.iter().flatten() {
        let selector = Selector::from_label_selector(selector).ok_or(BadSelector)?;
        let selected = all.iter().filter(|other| {
            other.metadata.name != role.metadata.name
                && selector.matches(other.metadata.labels.as_ref())
        });
        for rule in selected.flat_map(|other| other.rules.iter().flatten()) {
            if !gathered.iter().any(|one| is_same(one, rule)) {
                gathered.push(rule.clone());
            }
        }
    }
    let present = role.rules.as_deref().unwrap_or_default();
    let is_there = present.len() == gathered.len()
        && present
            .iter()
            .zip(&gathered)
            .all(|(own, wanted)| is_same(own, wanted));
    Ok((!is_there).then_some(gathered))
}

/// An absent list and an empty one say the same.
fn is_same(a: &PolicyRule, b: &PolicyRule) -> bool {
    let same = |a: &Option<Vec<String>>, b: &Option<Vec<String>>| {
        a.as_deref().unwrap_or_default() == b.as_deref().unwrap_or_default()
    };
    a.verbs == b.verbs
        && same(&a.api_groups, &b.api_groups)
        && same(&a.resources, &b.resources)
        && same(&a.resource_names, &b.resource_names)
        && same(&a.non_resource_urls, &b.non_resource_urls)
}

#[cfg(test)]
mod tests;
