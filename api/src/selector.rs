//! Label selectors and field selectors: parsing and matching, with upstream's error texts. Pure.

mod parse;

use crate::field::{FieldError, Path};
use crate::names;
use crate::object::Object;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    /// Sorted and unique. One value for an exact match.
    pub values: Vec<String>,
}

impl Requirement {
    /// Checks key and values. A place in the request is never named, as upstream's parser does not.
    pub fn new(
        key: String,
        operator: Operator,
        mut values: Vec<String>,
    ) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        values.sort_unstable();
        values.dedup();
        let faults = names::qualified_name(&key);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(
                &Path::root("key"),
                key.as_str(),
                faults.join("; "),
            ));
        }
        let path = Path::root("values");
        let count_fault = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(fault) = count_fault {
            errors.push(FieldError::invalid(&path, values.clone(), fault));
        }
        for (index, value) in values.iter().enumerate() {
            let ordered = matches!(operator, Operator::GreaterThan | Operator::LessThan);
            if ordered && value.parse::<i64>().is_err() {
                let fault = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(
                    &path.index(index),
                    value.as_str(),
                    fault,
                ));
            }
            let faults = names::label_value(value);
            if !faults.is_empty() {
                let path = path.index(index).key(&key);
                errors.push(FieldError::invalid(
                    &path,
                    value.as_str(),
                    faults.join("; "),
                ));
            }
        }
        match errors.as_slice() {
            [] => Ok(Self {
                key,
                operator,
                values,
            }),
            [one] => Err(SelectorError(one.to_string())),
            many => {
                let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
                Err(SelectorError(format!("[{}]", texts.join(", "))))
            }
        }
    }

    /// `label` is the value of the label `self.key`, if there is one.
    fn holds(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        match (self.operator, label) {
            (Operator::In, label) => label.is_some_and(listed),
            (Operator::NotIn, label) => !label.is_some_and(listed),
            (Operator::Exists, label) => label.is_some(),
            (Operator::DoesNotExist, label) => label.is_none(),
            (Operator::GreaterThan | Operator::LessThan, None) => false,
            (ordered, Some(label)) => {
                let bound = self
                    .values
                    .first()
                    .and_then(|value| value.parse::<i64>().ok());
                match (label.parse::<i64>(), bound) {
                    (Ok(label), Some(bound)) if ordered == Operator::GreaterThan => label > bound,
                    (Ok(label), Some(bound)) => label < bound,
                    _ => false,
                }
            }
        }
    }
}

/// All requirements must hold; the empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// From the text of `labelSelector=`: `app=web,tier in (a,b),!canary`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = parse::labels(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    /// From a metav1.LabelSelector. Null matches nothing, an empty one everything.
    pub fn from_json(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let mut requirements = Vec::new();
        for (key, value) in crate::json::entries(selector, "matchLabels") {
            let value = value.as_str().unwrap_or("").to_owned();
            requirements.push(Requirement::new(key.to_owned(), Operator::In, vec![value])?);
        }
        for expression in crate::json::list(selector, "matchExpressions") {
            let operator = match crate::json::text(expression, "operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let text = format!("\"{other}\" is not a valid label selector operator");
                    return Err(SelectorError(text));
                }
            };
            let values = crate::json::list(expression, "values").iter();
            let values = values
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let key = crate::json::text(expression, "key").to_owned();
            requirements.push(Requirement::new(key, operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    /// From a plain map of labels (a Service's or ReplicationController's `spec.selector`).
    pub fn from_map(labels: &Value) -> Self {
        let entries = labels.as_object().into_iter().flatten();
        let requirements = entries.map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.as_str().unwrap_or("").to_owned()],
        });
        Self {
            requirements: requirements.collect(),
            nothing: false,
        }
    }

    pub fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            requirements,
            nothing: false,
        }
    }

    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// True when it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    pub fn matches<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        if self.requirements.is_empty() {
            return !self.nothing;
        }
        let labels: Vec<(&str, &str)> = labels.into_iter().collect();
        self.matches_with(|key| {
            labels
                .iter()
                .find(|label| label.0 == key)
                .map(|label| label.1)
        })
    }

    /// `label` looks a label up by key.
    pub fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing
            && self
                .requirements
                .iter()
                .all(|one| one.holds(label(&one.key)))
    }

    pub fn matches_object(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }
}

impl std::fmt::Display for LabelSelector {
    /// The form that [`LabelSelector::parse`] reads; `status.selector` of a Scale has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, one) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let (key, values) = (&one.key, one.values.join(","));
            match (one.operator, one.values.len()) {
                (Operator::Exists, _) => write!(f, "{key}")?,
                (Operator::DoesNotExist, _) => write!(f, "!{key}")?,
                (Operator::In, 1) => write!(f, "{key}={values}")?,
                (Operator::NotIn, 1) => write!(f, "{key}!={values}")?,
                (Operator::In, _) => write!(f, "{key} in ({values})")?,
                (Operator::NotIn, _) => write!(f, "{key} notin ({values})")?,
                (Operator::GreaterThan, _) => write!(f, "{key}>{values}")?,
                (Operator::LessThan, _) => write!(f, "{key}<{values}")?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    pub field: String,
    /// `=`; false for `!=`.
    pub equal: bool,
    pub value: String,
}

/// All requirements must hold. Which fields a kind knows is its row's matter:
/// [`FieldSelector::check_fields`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// From the text of `fieldSelector=`: `spec.nodeName=n1,status.phase!=Failed`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Ok(Self {
            requirements: parse::fields(text)?,
        })
    }

    /// Refuses fields that are neither metadata's nor in `selectable`.
    pub fn check_fields(&self, selectable: &[&str]) -> Result<(), SelectorError> {
        let known = |field: &str| {
            matches!(field, "metadata.name" | "metadata.namespace") || selectable.contains(&field)
        };
        match self.requirements.iter().find(|one| !known(&one.field)) {
            None => Ok(()),
            Some(one) => {
                let field = &one.field;
                Err(SelectorError(if selectable.is_empty() {
                    format!(
                        "\"{field}\" is not a known field selector: only \"metadata.name\", \
                         \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {field}")
                }))
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// `value_of` gives the value of a field; an absent one is empty.
    pub fn matches(&self, value_of: impl Fn(&str) -> String) -> bool {
        self.requirements
            .iter()
            .all(|one| (value_of(&one.field) == one.value) == one.equal)
    }

    /// The value of an exact match on this field, when the selector asks for one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let found = self
            .requirements
            .iter()
            .find(|one| one.equal && one.field == field)?;
        Some(&found.value)
    }
}

#[cfg(test)]
mod tests;
