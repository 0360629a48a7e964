//! Reviews: questions about access and identity that are asked by a create and never stored.
//!
//! Answers exactly what a request of that user would meet, by asking the same authorizer.

use crate::authenticate::{Authenticator, User};
use crate::authorize::Authorizer;
use crate::authorize::rule::Rule;
use crate::request_info::RequestInfo;
use crate::tokens::TokenError;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::status::{Status, Subject};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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

    /// The answered review: `review` with its `status`.
    pub fn answer(&self, asked: &Question<'_>, mut review: Object) -> Result<Object, Status> {
        let status = match asked.resource.plural {
            "selfsubjectreviews" => json!({ "userInfo": user_info(asked.user) }),
            "tokenreviews" => self.token(&review, asked.now)?,
            "selfsubjectrulesreviews" => self.rules(asked.user, &review)?,
            _ => self.access(asked, &review)?,
        };
        if asked.resource.plural == "selfsubjectrulesreviews" {
            review.set(&["spec"], json!({}));
        }
        review.set(&["status"], status);
        Ok(review)
    }

    fn token(&self, review: &Object, now: Timestamp) -> Result<Value, Status> {
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
        Ok(match self.authenticator.token(token, wanted, now) {
            Ok((user, audiences)) => json!({
                "authenticated": true,
                "user": user_info(&user),
                "audiences": audiences,
            }),
            Err(TokenError::OfAnother) => json!({ "user": {}, "error": "[invalid bearer token]" }),
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
        let (mut rules, mut errors) = self.authorizer.rules_for(user, namespace);
        if user.in_group(crate::authenticate::user::MASTERS) {
            rules.push(everything());
            rules.push(everywhere());
        }
        let is_node = user.node_name().is_some();
        if is_node {
            errors.push("node authorizer does not support user rule resolution".to_owned());
        }
        let mut status = json!({
            "resourceRules": listed(&rules, |rule| !rule.resources.is_empty()),
            "nonResourceRules": listed(&rules, |rule| !rule.non_resource_urls.is_empty()),
            "incomplete": is_node,
        });
        if !errors.is_empty() {
            status["evaluationError"] = errors.join(", ").into();
        }
        Ok(status)
    }

    fn access(&self, asked: &Question<'_>, review: &Object) -> Result<Value, Status> {
        let errors = validate(asked.resource.plural, review);
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
            named = user_of(spec);
            &named
        };
        let decision = self.authorizer.authorize(user, &request_of(spec));
        let mut status = json!({ "allowed": decision.is_allowed() });
        if !decision.reason().is_empty() {
            status["reason"] = decision.reason().into();
        }
        Ok(status)
    }
}

fn everything() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        ..Rule::default()
    }
}

fn everywhere() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule {
        verbs: all(),
        non_resource_urls: all(),
        ..Rule::default()
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

fn user_of(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let texts = items.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    User {
        name: json::text(spec, "user").to_owned(),
        uid: json::text(spec, "uid").to_owned(),
        groups: texts(json::get(spec, "groups")),
        extra: json::entries(spec, "extra")
            .map(|(key, values)| (key.to_owned(), texts(values)))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn request_of(spec: &Value) -> RequestInfo {
    if let Some(asked) = json::some(spec, "nonResourceAttributes") {
        return RequestInfo {
            verb: json::text(asked, "verb").to_owned(),
            path: json::text(asked, "path").to_owned(),
            ..RequestInfo::default()
        };
    }
    let asked = json::get(spec, "resourceAttributes");
    let text = |name: &str| json::text(asked, name).to_owned();
    RequestInfo {
        verb: text("verb"),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        is_resource_request: true,
        path: String::new(),
        field_selector: selector(json::get(asked, "fieldSelector")),
        label_selector: selector(json::get(asked, "labelSelector")),
    }
}

/// As a query would carry it. Requirements that are no equality narrow nothing that is
/// authorized by selector, so they are left out.
fn selector(selector: &Value) -> String {
    let raw = json::text(selector, "rawSelector");
    if !raw.is_empty() {
        return raw.to_owned();
    }
    let equalities: Vec<String> = json::list(selector, "requirements")
        .iter()
        .filter(|one| json::text(one, "operator") == "In")
        .filter_map(|one| match json::list(one, "values") {
            [value] => Some(format!("{}={}", json::text(one, "key"), value.as_str()?)),
            _ => None,
        })
        .collect();
    equalities.join(",")
}

fn validate(plural: &str, review: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::root("spec");
    let spec = review.get(&["spec"]).unwrap_or(&json::NULL);
    let resource = json::some(spec, "resourceAttributes");
    let other = json::some(spec, "nonResourceAttributes");
    match (resource, other) {
        (Some(_), Some(other)) => errors.push(FieldError::invalid(
            &path.child("nonResourceAttributes"),
            other.clone(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            &path.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if plural != "selfsubjectaccessreviews"
        && json::text(spec, "user").is_empty()
        && json::list(spec, "groups").is_empty()
    {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", why));
    }
    if plural == "localsubjectaccessreviews" {
        local(review, resource, other, &mut errors);
    }
    errors
}

fn local(review: &Object, resource: Option<&Value>, other: Option<&Value>, errors: &mut ErrorList) {
    if let Some(resource) = resource
        && json::text(resource, "namespace") != review.namespace()
    {
        errors.push(FieldError::invalid(
            &Path::root("spec.resourceAttributes.namespace"),
            json::text(resource, "namespace"),
            "must match metadata.namespace",
        ));
    }
    if let Some(other) = other {
        errors.push(FieldError::invalid(
            &Path::root("spec.nonResourceAttributes"),
            other.clone(),
            "disallowed on this kind of request",
        ));
    }
}

#[cfg(test)]
mod tests;
