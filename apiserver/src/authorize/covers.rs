//! Whether some rules already grant what others would: the base of the escalation check and of
//! reconciling bootstrap roles. Pure.

use super::rule::Rule;

/// The parts of `wanted` that no rule of `owned` covers, broken down to single grants.
pub fn uncovered(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    wanted
        .iter()
        .flat_map(break_down)
        .filter(|grant| !owned.iter().any(|rule| covers(rule, grant)))
        .collect()
}

/// One rule for each group, resource, verb and name (or URL and verb), in upstream's order.
fn break_down(rule: &Rule) -> Vec<Rule> {
    let mut grants = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let grant = Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    grants.push(grant);
                    continue;
                }
                grants.extend(rule.resource_names.iter().map(|name| Rule {
                    resource_names: vec![name.clone()],
                    ..grant.clone()
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        grants.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..Rule::default()
        }));
    }
    grants
}

/// Grants that differ in the verb alone as one rule, the rest as they are.
pub fn compact(grants: &[Rule]) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for grant in grants {
        let same = |rule: &&mut Rule| {
            grant.non_resource_urls.is_empty()
                && rule.non_resource_urls.is_empty()
                && rule.api_groups == grant.api_groups
                && rule.resources == grant.resources
                && rule.resource_names == grant.resource_names
        };
        match compacted.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend_from_slice(&grant.verbs),
            None => compacted.push(grant.clone()),
        }
    }
    compacted
}

/// `grant` is broken down.
fn covers(owner: &Rule, grant: &Rule) -> bool {
    let all = |owned: &[String], wanted: &[String]| {
        owned.iter().any(|one| one == "*") || wanted.iter().all(|one| owned.contains(one))
    };
    let names = owner.resource_names.is_empty()
        || !grant.resource_names.is_empty()
            && grant
                .resource_names
                .iter()
                .all(|name| owner.resource_names.contains(name));
    let resources = all(&owner.resources, &grant.resources)
        || grant.resources.iter().all(|wanted| {
            let any_parent = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            owner.resources.contains(wanted)
                || any_parent.is_some_and(|pattern| owner.resources.contains(&pattern))
        });
    all(&owner.verbs, &grant.verbs)
        && all(&owner.api_groups, &grant.api_groups)
        && resources
        && names
        && grant.non_resource_urls.iter().all(|url| owner.has_url(url))
}
