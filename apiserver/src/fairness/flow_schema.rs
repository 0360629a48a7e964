//! FlowSchemas: which requests belong to which priority level, and to which flow of it.
//!
//! Pure; upstream's matching. A schema that cannot be read matches nothing: it passed validation
//! when it was stored.

use crate::authenticate::User;
use crate::authenticate::user::service_account;
use crate::request_info::RequestInfo;
use coracle_api::object::Object;
use http::HeaderValue;
use serde::Deserialize;
use std::sync::Arc;

pub const EXEMPT: &str = "exempt";
pub const CATCH_ALL: &str = "catch-all";
const ALL: &str = "*";

/// What tells the flows of one schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguisher {
    None,
    ByUser,
    ByNamespace,
}

#[derive(Debug)]
pub struct FlowSchema {
    pub name: Arc<str>,
    pub uid: HeaderValue,
    pub precedence: i64,
    pub level: String,
    pub distinguisher: Distinguisher,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<NonResourceRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    user: Option<Name>,
    group: Option<Name>,
    service_account: Option<Account>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NonResourceRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    urls: Vec<String>,
}

impl FlowSchema {
    pub fn of(object: &Object) -> Self {
        let rules = object.list(&["spec", "rules"]).iter();
        let method = object.str(&["spec", "distinguisherMethod", "type"]);
        Self {
            name: object.name().into(),
            uid: HeaderValue::from_str(object.uid())
                .unwrap_or_else(|_| HeaderValue::from_static("")),
            precedence: object.i64(&["spec", "matchingPrecedence"]).unwrap_or(1000),
            level: object
                .str(&["spec", "priorityLevelConfiguration", "name"])
                .to_owned(),
            distinguisher: match method {
                "ByUser" => Distinguisher::ByUser,
                "ByNamespace" => Distinguisher::ByNamespace,
                _ => Distinguisher::None,
            },
            rules: rules
                .filter_map(|rule| Rule::deserialize(rule).ok())
                .collect(),
        }
    }

    /// The order in which schemas are tried.
    pub fn order(&self) -> (i64, &str) {
        (self.precedence, &self.name)
    }

    pub fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        self.rules.iter().any(|rule| rule.matches(user, info))
    }

    pub fn flow<'a>(&self, user: &'a User, info: &'a RequestInfo) -> &'a str {
        match self.distinguisher {
            Distinguisher::None => "",
            Distinguisher::ByUser => &user.name,
            Distinguisher::ByNamespace => &info.namespace,
        }
    }
}

impl Rule {
    fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        if !self.subjects.iter().any(|subject| subject.matches(user)) {
            return false;
        }
        if info.is_resource_request {
            self.resource_rules.iter().any(|rule| rule.matches(info))
        } else {
            self.non_resource_rules
                .iter()
                .any(|rule| rule.matches(info))
        }
    }
}

impl Subject {
    fn matches(&self, user: &User) -> bool {
        match (
            self.kind.as_str(),
            &self.user,
            &self.group,
            &self.service_account,
        ) {
            ("User", Some(wanted), _, _) => wanted.name == ALL || wanted.name == user.name,
            ("Group", _, Some(wanted), _) => wanted.name == ALL || user.in_group(&wanted.name),
            ("ServiceAccount", _, _, Some(wanted)) => {
                service_account(&user.name).is_some_and(|(namespace, name)| {
                    wanted.namespace == namespace && (wanted.name == ALL || wanted.name == name)
                })
            }
            _ => false,
        }
    }
}

impl ResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        has(&self.verbs, &info.verb)
            && self.has_resource(info)
            && has(&self.api_groups, &info.group)
            && if info.namespace.is_empty() {
                self.cluster_scope
            } else {
                has(&self.namespaces, &info.namespace)
            }
    }

    fn has_resource(&self, info: &RequestInfo) -> bool {
        self.resources.iter().any(|wanted| {
            if wanted == ALL {
                return true;
            }
            let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
            resource == info.resource && subresource == info.subresource
        })
    }
}

impl NonResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        has(&self.verbs, &info.verb) && self.urls.iter().any(|url| covers(url, &info.path))
    }
}

/// As upstream: a URL covers itself and all below it, with or without a star at its end.
fn covers(url: &str, path: &str) -> bool {
    if url == ALL || url == path {
        return true;
    }
    let below = url.strip_suffix('*').unwrap_or(url);
    let below = below.strip_suffix('/').unwrap_or(below);
    path.strip_prefix(below)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn has(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == ALL || item == wanted)
}

#[cfg(test)]
mod tests;
