//! Label selectors of typed objects. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A selector that was checked; an empty one matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

impl Selector {
    /// `None` when an operator is unknown, which validation keeps out.
    pub(crate) fn from_label_selector(selector: &LabelSelector) -> Option<Self> {
        let mut requirements = Self::from_map(selector.match_labels.as_ref()).0;
        for one in selector.match_expressions.iter().flatten() {
            let (key, values) = (one.key.clone(), one.values.clone().unwrap_or_default());
            requirements.push(match one.operator.as_str() {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::DoesNotExist(key),
                _ => return None,
            });
        }
        Some(Self(requirements))
    }

    pub(crate) fn from_map(labels: Option<&BTreeMap<String, String>>) -> Self {
        let labels = labels.into_iter().flatten();
        let equal =
            |(key, value): (&String, &String)| Requirement::In(key.clone(), vec![value.clone()]);
        Self(labels.map(equal).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let value = |key: &String| labels.and_then(|labels| labels.get(key));
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => value(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => {
                value(key).is_none_or(|value| !values.contains(value))
            }
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::DoesNotExist(key) => value(key).is_none(),
        })
    }
}

/// As Go prints the structure.
pub(crate) fn as_go(selector: &LabelSelector) -> String {
    let mut labels = String::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        write!(labels, "{key}: {value},").expect("a string takes everything");
    }
    let mut expressions = String::new();
    for one in selector.match_expressions.iter().flatten() {
        let (key, operator) = (&one.key, &one.operator);
        let values = one.values.as_deref().unwrap_or_default().join(" ");
        let text = "LabelSelectorRequirement";
        write!(
            expressions,
            "{text}{{Key:{key},Operator:{operator},Values:[{values}],}},"
        )
        .expect("a string takes everything");
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests;
