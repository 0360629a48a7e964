//! A binding: where its policy applies, with which parameters, and what comes of a refusal. Pure.

use super::constraints::Constraints;
use super::params::ParamRef;
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::Value;

#[derive(Debug)]
pub struct Binding {
    pub name: String,
    pub policy: String,
    pub params: Option<ParamRef>,
    /// Without any it concerns all that its policy concerns.
    pub constraints: Option<Constraints>,
    pub actions: Vec<Action>,
}

/// What comes of a validation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Deny,
    Audit,
    Warn,
}

impl Action {
    fn known(text: &str) -> Option<Self> {
        match text {
            "Deny" => Some(Self::Deny),
            "Audit" => Some(Self::Audit),
            "Warn" => Some(Self::Warn),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Audit => "Audit",
            Self::Warn => "Warn",
        }
    }
}

impl Binding {
    pub fn read(object: &Object) -> Self {
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let actions = json::list(spec, "validationActions").iter();
        Self {
            name: object.name().to_owned(),
            policy: json::text(spec, "policyName").to_owned(),
            params: json::some(spec, "paramRef").map(ParamRef::read),
            constraints: json::some(spec, "matchResources").map(Constraints::read),
            actions: actions
                .filter_map(|one| Action::known(one.as_str()?))
                .collect(),
        }
    }
}
