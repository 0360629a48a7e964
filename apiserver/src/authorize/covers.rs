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

/// One rule for each verb, group, resource and name (or verb and URL).
fn break_down(rule: &Rule) -> Vec<Rule> {
    let mut grants = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
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
        grants.extend(rule.non_resource_urls.iter().map(|url| Rule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..Rule::default()
        }));
    }
    grants
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
