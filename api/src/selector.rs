//! Label selectors and field selectors. Pure.

use crate::object::Object;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// All requirements must hold; the empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {}

impl LabelSelector {
    pub fn parse(_text: &str) -> Result<Self, SelectorError> {
        Ok(Self {})
    }

    /// From a metav1.LabelSelector. Null or absent matches nothing.
    pub fn from_json(_selector: &Value) -> Result<Self, SelectorError> {
        Ok(Self {})
    }

    pub fn is_empty(&self) -> bool {
        true
    }

    pub fn matches<'a>(&self, _labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        true
    }

    pub fn matches_object(&self, object: &Object) -> bool {
        self.matches(object.labels())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    pub field: String,
    /// `=`; false for `!=`.
    pub equal: bool,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    pub fn parse(_text: &str) -> Result<Self, SelectorError> {
        Ok(Self::default())
    }

    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// `value_of` gives the value of a field; an absent one is empty.
    pub fn matches(&self, _value_of: impl Fn(&str) -> String) -> bool {
        true
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
