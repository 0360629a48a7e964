//! Which requests a rule of a webhook means. Pure.

use crate::admission::Operation;
use coracle_api::json;
use serde_json::Value;

const ANY: &str = "*";

/// One entry of `rules`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    /// One that nobody knows, and nothing has.
    Unknown,
}

/// What is asked, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub operation: Operation,
    /// Of a namespace itself: its name.
    pub namespace: &'a str,
}

impl Rule {
    pub fn read(rule: &Value) -> Self {
        let texts = |name: &str| {
            let all = json::list(rule, name).iter().filter_map(Value::as_str);
            all.map(str::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: match json::text(rule, "scope") {
                "" | ANY => Scope::All,
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::Unknown,
            },
        }
    }

    pub fn matches(&self, at: &Place<'_>) -> bool {
        has(&self.operations, at.operation.as_str())
            && has(&self.groups, at.group)
            && has(&self.versions, at.version)
            && self.resources.iter().any(|one| is_meant(one, at))
            && self.scope.has(at)
    }
}

impl Scope {
    /// Namespaces are in none, although they are asked for with a namespace.
    fn has(self, at: &Place<'_>) -> bool {
        let is_namespace = (at.group, at.version, at.resource) == ("", "v1", "namespaces");
        let is_in_one = !is_namespace && !at.namespace.is_empty();
        match self {
            Self::All => true,
            Self::Namespaced => is_in_one,
            Self::Cluster => !is_in_one,
            Self::Unknown => false,
        }
    }
}

fn has(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| item == ANY || item == wanted)
}

/// `pods` is no subresource of pods; `*/*` is everything.
fn is_meant(rule: &str, at: &Place<'_>) -> bool {
    let (resource, subresource) = rule.split_once('/').unwrap_or((rule, ""));
    (resource == ANY || resource == at.resource)
        && (subresource == ANY || subresource == at.subresource)
}
