//! The audit policy (`audit.k8s.io/v1`): how much of which requests is recorded.
//!
//! Pure. The first rule that matches decides; without one nothing is recorded.

use crate::authenticate::User;
use crate::request_info::RequestInfo;
use serde::Deserialize;
use std::collections::BTreeSet;

pub const API_VERSION: &str = "audit.k8s.io/v1";

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    None,
    Metadata,
    Request,
    RequestResponse,
}

impl Level {
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde::de::IgnoredAny,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// What the policy says about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    pub omitted: BTreeSet<Stage>,
    pub omit_managed_fields: bool,
}

/// Why a policy cannot be used: for the operator, one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPolicy(pub String);

impl Policy {
    /// YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, BadPolicy> {
        let policy: Self =
            serde_yaml_ng::from_str(text).map_err(|error| BadPolicy(error.to_string()))?;
        if policy.api_version != API_VERSION || policy.kind != "Policy" {
            let (version, kind) = (&policy.api_version, &policy.kind);
            return Err(BadPolicy(format!(
                "it must be of apiVersion {API_VERSION} and kind Policy, not {version} and {kind}"
            )));
        }
        if policy.rules.is_empty() {
            return Err(BadPolicy(
                "it has no rules, so nothing would be recorded".into(),
            ));
        }
        for (place, rule) in policy.rules.iter().enumerate() {
            rule.check()
                .map_err(|why| BadPolicy(format!("rules[{place}].{why}")))?;
        }
        Ok(policy)
    }

    /// `user` is absent when nobody was recognized.
    pub fn verdict(&self, user: Option<&User>, info: &RequestInfo) -> Verdict {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(user, info)) else {
            return Verdict::default();
        };
        let stages = self.omit_stages.iter().chain(&rule.omit_stages);
        Verdict {
            level: rule.level,
            omitted: stages.copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        for url in self.non_resource_urls.iter().filter(|url| *url != "*") {
            if !url.starts_with('/') {
                return Err(format!(
                    "nonResourceURLs: {url:?}: non-resource URL rules must begin with a '/' \
                     character"
                ));
            }
            if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
                return Err(format!(
                    "nonResourceURLs: {url:?}: non-resource URL wildcards '*' must be the final \
                     character of the rule"
                ));
            }
        }
        for of in &self.resources {
            let is_group = of.group.is_empty()
                || of.group == "*"
                || coracle_api::names::dns_subdomain(&of.group).is_empty();
            if !is_group {
                return Err(format!(
                    "resources.group: {:?}: must be the name of an API group, without a version",
                    of.group
                ));
            }
            if !of.resource_names.is_empty() && of.resources.is_empty() {
                let why = "using resourceNames requires at least one resource";
                return Err(format!("resources.resourceNames: {why}"));
            }
        }
        let is_both = !self.resources.is_empty() || !self.namespaces.is_empty();
        if is_both && !self.non_resource_urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            return Err(format!("nonResourceURLs: {why}"));
        }
        Ok(())
    }

    fn matches(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let is_user =
            self.users.is_empty() || user.is_some_and(|user| self.users.contains(&user.name));
        let is_group = self.user_groups.is_empty()
            || user.is_some_and(|user| {
                let mut groups = user.groups.iter();
                groups.any(|group| self.user_groups.contains(group))
            });
        let is_verb = self.verbs.is_empty() || self.verbs.contains(&info.verb);
        if !(is_user && is_group && is_verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.is_resource_request && self.matches_resource(info);
        }
        if !self.non_resource_urls.is_empty() {
            return !info.is_resource_request && self.matches_path(&info.path);
        }
        true
    }

    fn matches_resource(&self, info: &RequestInfo) -> bool {
        if !self.namespaces.is_empty() && !self.namespaces.contains(&info.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|of| of.matches(info))
    }

    fn matches_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|url| {
            url == path
                || url
                    .strip_suffix('*')
                    .is_some_and(|start| path.starts_with(start))
        })
    }
}

impl GroupResources {
    fn matches(&self, info: &RequestInfo) -> bool {
        if self.group != info.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        is_named && self.resources.iter().any(|wanted| names(wanted, info))
    }
}

/// `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
fn names(wanted: &str, info: &RequestInfo) -> bool {
    match wanted.split_once('/') {
        _ if wanted == "*" => true,
        None => info.subresource.is_empty() && wanted == info.resource,
        Some((resource, "*")) => resource == info.resource,
        Some((resource, subresource)) => {
            !info.subresource.is_empty()
                && subresource == info.subresource
                && (resource == "*" || resource == info.resource)
        }
    }
}

#[cfg(test)]
mod tests;
