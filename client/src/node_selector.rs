//! How node selector terms match a node: labels by `matchExpressions`, `metadata.name` by
//! `matchFields`. Terms are alternatives, the requirements of a term must all hold, and a term
//! without any matches nothing.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};

/// `label` says what the node has for a key.
pub fn term_matches<'a>(
    term: &NodeSelectorTerm,
    label: impl Fn(&str) -> Option<&'a str>,
    name: &str,
) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or(&[]);
    let fields = term.match_fields.as_deref().unwrap_or(&[]);
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    expressions
        .iter()
        .all(|one| requirement_matches(one, label(&one.key)))
        && fields.iter().all(|one| {
            let value = (one.key == "metadata.name").then_some(name);
            requirement_matches(one, value)
        })
}

fn requirement_matches(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or(&[]);
    let listed = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let numbers = || {
        let bound = values.first()?.parse::<i64>().ok()?;
        Some((value?.parse::<i64>().ok()?, bound))
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}
