//! Which of the objects a quota is about.

use crate::json;
use crate::object::Object;
use serde_json::Value;

/// One condition of a quota: a scope by itself, or an expression of its scope selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub name: String,
    pub operator: String,
    pub values: Vec<String>,
}

impl Scope {
    /// All of a quota's: an object must be in each.
    pub fn all_of(quota: &Object) -> Vec<Self> {
        let plain = quota.list(&["spec", "scopes"]).iter();
        let plain = plain.filter_map(Value::as_str).map(|name| Self {
            name: name.to_owned(),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let expressions = quota.list(&["spec", "scopeSelector", "matchExpressions"]);
        plain
            .chain(expressions.iter().map(Self::of_expression))
            .collect()
    }

    fn of_expression(expression: &Value) -> Self {
        let values = json::list(expression, "values").iter();
        Self {
            name: json::text(expression, "scopeName").to_owned(),
            operator: json::text(expression, "operator").to_owned(),
            values: values
                .filter_map(|value| Some(value.as_str()?.to_owned()))
                .collect(),
        }
    }

    /// The condition on a name that is there, or not.
    pub fn selects(&self, name: Option<&str>) -> bool {
        let listed = name.is_some_and(|name| self.values.iter().any(|value| value == name));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => name.is_some(),
            "DoesNotExist" => name.is_none(),
            _ => false,
        }
    }
}
