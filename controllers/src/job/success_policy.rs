//! Whether `spec.successPolicy` is met. Pure.

use k8s_openapi::api::batch::v1::SuccessPolicy;

use super::intervals::Intervals;

/// The text of the condition when a rule is met.
pub(super) fn met(
    policy: Option<&SuccessPolicy>,
    completions: i32,
    completed: &Intervals,
) -> Option<String> {
    let rules = &policy.filter(|_| !completed.is_empty())?.rules;
    let met = rules
        .iter()
        .position(|rule| match &rule.succeeded_indexes {
            None => rule
                .succeeded_count
                .is_some_and(|count| completed.count() >= count),
            Some(text) => {
                let wanted = Intervals::parse(text, completions);
                let common = wanted.common(completed);
                let enough = rule.succeeded_count.is_some_and(|count| common >= count);
                !wanted.is_empty() && (enough || common == wanted.count())
            }
        })?;
    Some(format!("Matched rules at index {met}"))
}
