//! Expressions that narrow what a webhook is asked about: all must hold.
//!
//! One that does not hold lets the request pass unasked, whatever becomes of the others. What cannot
//! be evaluated is a failure, which the webhook's policy decides about.

use super::form::Shown;
use super::review;
use crate::admission::Attributes;
use crate::authenticate::issuer::expression::Expression;
use crate::authorize::Authorizer;
use crate::authorize::expression::Asking;
use crate::request_info::RequestInfo;
use coracle_api::cel::budget::Budget;
use coracle_api::json;
use coracle_api::kinds::admission_registration::expressions::Scope;
use coracle_api::object::Object;
use coracle_api::status::aggregate;
use serde_json::Value;
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};

const OBJECT: &str = "object";

#[derive(Debug, Default)]
pub struct Conditions(Vec<Result<Expression, String>>);

/// Whether a request meets all conditions.
#[derive(Debug, PartialEq, Eq)]
pub enum Matched {
    Yes,
    No,
    /// Some cannot be evaluated, and none says no.
    Unknown(String),
}

impl Conditions {
    /// Compiles them. What is wrong with one is told when it would be evaluated.
    pub fn read(conditions: &[Value]) -> Self {
        if conditions.is_empty() {
            return Self::default();
        }
        let scope = Scope::new(false, &Budget::default());
        let compiled = conditions.iter().map(|condition| {
            let text = json::text(condition, "expression").trim();
            Expression::compile_in(scope.environment(), text, OBJECT, true)
                .map_err(|why| format!("expression '{text}' resulted in error: {why}"))
        });
        Self(compiled.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matched(
        &self,
        authorizer: &Arc<Authorizer>,
        asked: &Attributes<'_>,
        shown: &Shown,
    ) -> Matched {
        let value = |object: &Option<Object>| object.as_ref().map_or(Value::Null, Object::to_value);
        let (object, old) = (value(&shown.object), value(&shown.old));
        let request = review::variable(asked, &shown.form);
        let variables = [
            (OBJECT, &object),
            ("oldObject", &old),
            ("request", &request),
            // As upstream, which has policies alone see it.
            ("namespaceObject", &Value::Null),
        ];
        let user = Arc::new(asked.user.clone());
        let authorizer = Asking::new(Arc::clone(authorizer), user);
        let of_request = authorizer.about(RequestInfo {
            group: shown.form.resource.group.to_owned(),
            version: "*".to_owned(),
            resource: shown.form.resource.plural.to_owned(),
            subresource: asked.subresource.to_owned(),
            namespace: asked.settled_namespace().to_owned(),
            name: asked.name.to_owned(),
            is_resource_request: true,
            ..RequestInfo::default()
        });
        let asking = [
            ("authorizer", authorizer),
            ("authorizer.requestResource", of_request),
        ];
        // An expression may take a second: other requests go to another thread.
        let has_others = Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() != RuntimeFlavor::CurrentThread);
        if has_others {
            tokio::task::block_in_place(|| self.evaluate(&variables, &asking))
        } else {
            self.evaluate(&variables, &asking)
        }
    }

    fn evaluate(
        &self,
        variables: &[(&'static str, &Value)],
        asking: &[(&'static str, Asking)],
    ) -> Matched {
        let mut errors = Vec::new();
        for condition in &self.0 {
            match condition.as_ref().map(|one| one.bool_of(variables, asking)) {
                Ok(Ok(Some(true))) => {}
                Ok(Ok(Some(false))) => return Matched::No,
                Ok(Ok(None)) => errors.push("cel expression must evaluate to a bool".to_owned()),
                Ok(Err(why)) => errors.push(why),
                Err(why) => errors.push(why.clone()),
            }
        }
        if errors.is_empty() {
            Matched::Yes
        } else {
            Matched::Unknown(aggregate(&errors))
        }
    }
}
