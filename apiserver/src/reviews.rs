//! Reviews: questions about access and identity that are asked by a create and never stored.
//!
//! Answers exactly what a request of that user would meet, by asking the same authorizer.

mod attributes; // The user and the request that a review asks about.
mod validate; // What a review must say.

use crate::authenticate::{Authenticator, User};
use crate::authorize::Authorizer;
use crate::authorize::rule::Rule;
use crate::tokens::{Remarks, TokenError};
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject, aggregate};
use coracle_api::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;

#[derive(Debug)]
pub struct Reviews {
    authorizer: Arc<Authorizer>,
    authenticator: Arc<Authenticator>,
}

/// Who asks what, and where.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub resource: &'a Resource,
    pub user: &'a User,
    pub namespace: &'a str,
    pub now: Timestamp,
}

/// True for a resource that this module answers.
pub fn is_review(resource: &Resource) -> bool {
    match resource.group {
        "authorization.k8s.io" => true,
        "authentication.k8s.io" => {
            matches!(resource.plural, "tokenreviews" | "selfsubjectreviews")
        }
        _ => false,
    }
}

impl Reviews {
    pub fn new(authorizer: Arc<Authorizer>, authenticator: Arc<Authenticator>) -> Self {
        Self {
            authorizer,
            authenticator,
        }
    }

    /// The answered review: `review` with its `status`. The remarks are of the token that it is
    /// about.
    pub async fn answer(
        &self,
        asked: &Question<'_>,
        mut review: Object,
        remarks: &mut Remarks,
    ) -> Result<Object, Status> {
        let status = match asked.resource.plural {
            "selfsubjectreviews" => json!({ "userInfo": user_info(asked.user) }),
            "tokenreviews" => self.token(&review, asked.now, remarks).await?,
            "selfsubjectrulesreviews" => self.rules(asked.user, &review)?,
            _ => self.access(asked, &review)?,
        };
        // These are answered with a new object, the others with what was asked.
        match asked.resource.plural {
            "selfsubjectrulesreviews" => {
                review.set(&["metadata"], json!({}));
                review.set(&["spec"], json!({}));
            }
            "selfsubjectreviews" => {
                let now = timestamp::format_time(asked.now);
                review.set(&["metadata"], json!({ "creationTimestamp": now }));
            }
            _ => {}
        }
        review.set(&["status"], status);
        Ok(review)
    }

    async fn token(
        &self,
        review: &Object,
        now: Timestamp,
        remarks: &mut Remarks,
    ) -> Result<Value, Status> {
        let token = review.str(&["spec", "token"]);
        if token.is_empty() {
            let why = "token is required for TokenReview in authentication";
            return Err(Status::bad_request(why));
        }
        let asked = review.list(&["spec", "audiences"]).iter();
        let asked: Vec<String> = asked.filter_map(Value::as_str).map(str::to_owned).collect();
        let wanted = match asked.is_empty() {
            true => self.authenticator.audiences(),
            false => &asked,
        };
        let checked = self.authenticator.token(token, wanted, now, remarks).await;
        Ok(match checked {
            Ok(checked) => json!({
                "authenticated": true,
                "user": user_info(&checked.user),
                "audiences": checked.audiences,
            }),
            Err(TokenError::OfAnother) => json!({ "user": {}, "error": "invalid bearer token" }),
            Err(error) => {
                json!({ "user": {}, "error": format!("[invalid bearer token, {error}]") })
            }
        })
    }

    fn rules(&self, user: &User, review: &Object) -> Result<Value, Status> {
        let namespace = review.str(&["spec", "namespace"]);
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (rules, missing) = self.authorizer.rules_for(user, namespace);
        let mut errors = Vec::new();
        let is_node = user.node_name().is_some();
        if is_node {
            errors.push("node authorizer does not support user rule resolution".to_owned());
        }
        errors.extend(missing.iter().map(ToString::to_string));
        let mut status = json!({
            "resourceRules": listed(&rules, |rule| !rule.resources.is_empty()),
            "nonResourceRules": listed(&rules, |rule| !rule.non_resource_urls.is_empty()),
            "incomplete": is_node,
        });
        if !errors.is_empty() {
            status["evaluationError"] = aggregate(&errors).into();
        }
        Ok(status)
    }

    fn access(&self, asked: &Question<'_>, review: &Object) -> Result<Value, Status> {
        let errors = validate::validate(asked.resource.plural, review);
        if !errors.is_empty() {
            let subject = Subject {
                group: asked.resource.group,
                // As upstream, which does not say what it was.
                resource: "",
                name: "",
            };
            return Err(Status::invalid(subject, &errors));
        }
        let spec = review.get(&["spec"]).unwrap_or(&json::NULL);
        let named;
        let user = if asked.resource.plural == "selfsubjectaccessreviews" {
            asked.user
        } else {
            named = attributes::user(spec);
            &named
        };
        let (info, ignored) = attributes::request(spec);
        let decision = self.authorizer.authorize(user, &info);
        let mut status = json!({ "allowed": decision.is_allowed() });
        if !decision.reason().is_empty() {
            status["reason"] = decision.reason().into();
        }
        if !ignored.is_empty() {
            status["evaluationError"] = ignored.join("; ").into();
        }
        Ok(status)
    }
}

fn listed(rules: &[Rule], wanted: impl Fn(&Rule) -> bool) -> Value {
    rules
        .iter()
        .filter(|rule| wanted(rule))
        .filter_map(|rule| serde_json::to_value(rule).ok())
        .collect()
}

/// A user as reviews show one.
pub fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), values.clone().into()))
            .collect();
        info["extra"] = extra.into();
    }
    info
}

#[cfg(test)]
mod tests;
