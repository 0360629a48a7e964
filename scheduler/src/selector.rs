//! Label selectors of typed objects, parsed once and matched without allocating.

use coracle_api::selector::Operator;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use std::collections::BTreeMap;

pub use coracle_api::selector::{LabelSelector as Selector, Requirement, SelectorError};

pub type Labels = BTreeMap<String, String>;

/// An absent selector matches nothing, an empty one everything. One that cannot be read matches
/// nothing: validation keeps such out.
pub fn parsed(selector: Option<&meta::LabelSelector>) -> Selector {
    let requirements = selector.map(requirements);
    match requirements {
        Some(Ok(requirements)) => Selector::from_requirements(requirements),
        Some(Err(_)) | None => Selector::nothing(),
    }
}

/// The selector of a plain map.
pub fn of_map(labels: &Labels) -> Selector {
    let pairs = labels.iter();
    Selector::from_requirements(pairs.map(|(key, value)| equal(key, value)).collect())
}

/// `key` has `value`.
pub fn equal(key: &str, value: &str) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
    }
}

/// Labels, however they are kept.
pub trait LabelSet {
    fn label(&self, key: &str) -> Option<&str>;
}

impl LabelSet for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

pub fn matches<L: LabelSet>(selector: &Selector, labels: Option<&L>) -> bool {
    selector.matches_with(|key| labels?.label(key))
}

fn requirements(selector: &meta::LabelSelector) -> Result<Vec<Requirement>, SelectorError> {
    let labels = selector.match_labels.iter().flatten();
    let mut found = labels
        .map(|(key, value)| Requirement::new(key.clone(), Operator::In, vec![value.clone()]))
        .collect::<Result<Vec<_>, _>>()?;
    for one in selector.match_expressions.iter().flatten() {
        let operator = match one.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(SelectorError(format!("unknown operator {other}"))),
        };
        let values = one.values.clone().unwrap_or_default();
        found.push(Requirement::new(one.key.clone(), operator, values)?);
    }
    Ok(found)
}
