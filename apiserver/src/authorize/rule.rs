//! One policy rule and whether it allows a request. Pure; upstream's matching.

use crate::request_info::RequestInfo;
use coracle_api::object::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const ALL: &str = "*";

/// `rules[]` of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    pub verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// The rules of a role; a rule that is not one is left out.
pub fn of_role(role: &Object) -> Vec<Rule> {
    rules(role.list(&["rules"]))
}

/// What `cluster-admin` grants: every verb on every resource, and on every path.
pub fn everything() -> [Rule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        Rule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Rule::default()
        },
        Rule {
            verbs: all(),
            non_resource_urls: all(),
            ..Rule::default()
        },
    ]
}

pub fn rules(values: &[Value]) -> Vec<Rule> {
    values
        .iter()
        .filter_map(|value| Rule::deserialize(value).ok())
        .collect()
}

impl Rule {
    pub fn allows(&self, info: &RequestInfo) -> bool {
        if !has(&self.verbs, &info.verb) {
            return false;
        }
        if info.is_resource_request {
            has(&self.api_groups, &info.group)
                && self.has_resource(&info.resource, &info.subresource)
                && (self.resource_names.is_empty() || self.resource_names.contains(&info.name))
        } else {
            self.has_url(&info.path)
        }
    }

    /// A review may ask for `pods/log` as one name: the two are compared joined.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| {
            if rule == ALL {
                return true;
            }
            if subresource.is_empty() {
                return rule == resource;
            }
            rule.split_once('/')
                .is_some_and(|(own, sub)| sub == subresource && (own == ALL || own == resource))
        })
    }

    pub fn has_url(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|url| {
            url == ALL
                || url == path
                || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
        })
    }

    /// As upstream prints a rule in an escalation message.
    pub fn compact(&self) -> String {
        let quoted = |items: &[String]| {
            let items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            format!("[{}]", items.join(" "))
        };
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        .map(|(name, items)| format!("{name}:{}", quoted(items)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn has(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == ALL || item == wanted)
}
