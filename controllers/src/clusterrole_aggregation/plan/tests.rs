//! Rules are gathered by label, once each, and only written when something changes.

use super::*;
use serde_json::{Value, json};

fn role(value: Value) -> Arc<ClusterRole> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn part(name: &str, label: &str, verbs: &[&str]) -> Arc<ClusterRole> {
    role(json!({
        "metadata": { "name": name, "labels": { label: "true" } },
        "rules": verbs.iter().map(|verb| rule(verb)).collect::<Vec<_>>(),
    }))
}

fn rule(verb: &str) -> Value {
    json!({ "verbs": [verb], "apiGroups": [""], "resources": ["pods"] })
}

fn whole(selectors: Value, rules: Value) -> Arc<ClusterRole> {
    role(json!({
        "metadata": { "name": "whole", "labels": { "to-whole": "true" } },
        "aggregationRule": { "clusterRoleSelectors": selectors },
        "rules": rules,
    }))
}

/// The verbs of the rules to write.
fn gathered(selectors: Value, rules: Value, parts: &[Arc<ClusterRole>]) -> Option<Vec<String>> {
    let whole = whole(selectors, rules);
    let mut all = parts.to_vec();
    all.push(Arc::clone(&whole));
    let rules = plan(&whole, all).unwrap()?;
    Some(rules.iter().map(|rule| rule.verbs.join("+")).collect())
}

fn labelled(label: &str) -> Value {
    json!({ "matchLabels": { label: "true" } })
}

#[test]
fn rules_come_by_selector_then_by_name_once_each_and_never_from_the_role_itself() {
    let parts = [
        part("z", "to-whole", &["get", "list"]),
        part("a", "to-whole", &["watch", "get"]),
        part("m", "to-other", &["delete"]),
        part("n", "unrelated", &["create"]),
    ];
    let selectors = json!([labelled("to-other"), labelled("to-whole")]);
    let found = gathered(selectors, json!([rule("patch")]), &parts);
    assert_eq!(found.unwrap(), ["delete", "watch", "get", "list"]);
}

#[test]
fn nothing_is_written_when_the_rules_are_there_or_the_role_gathers_nothing() {
    let parts = [part("a", "to-whole", &["get"])];
    let own = json!([{
        "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [],
    }]);
    assert_eq!(gathered(json!([labelled("to-whole")]), own, &parts), None);
    let plain = part("a", "to-whole", &["get"]);
    assert_eq!(plan(&plain, parts.to_vec()), Ok(None));
}

#[test]
fn rules_that_nobody_gives_any_more_go() {
    let found = gathered(json!([labelled("to-whole")]), json!([rule("get")]), &[]);
    assert_eq!(found.unwrap(), Vec::<String>::new());
}

#[test]
fn an_empty_selector_takes_every_other_role_and_a_bad_one_is_refused() {
    let parts = [part("a", "x", &["get"]), part("b", "y", &["list"])];
    let found = gathered(json!([{}]), json!([]), &parts);
    assert_eq!(found.unwrap(), ["get", "list"]);
    let bad = json!([{ "matchExpressions": [{ "key": "a", "operator": "Is" }] }]);
    assert_eq!(
        plan(&whole(bad, json!([])), parts.to_vec()),
        Err(BadSelector)
    );
}
