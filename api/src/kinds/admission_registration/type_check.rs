//! Expressions of a stored policy held against the kinds that its rules name, as far as those are
//! known. Pure.
//!
//! What is found is told in the policy's status and changes nothing of what it does: rules may mean
//! kinds that are not there yet.

use super::expressions::Scope;
use crate::catalogue;
use crate::cel::budget::Budget;
use crate::cel::environment::Environment;
use crate::cel::types::Type;
use crate::json;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// As upstream: what more kinds a policy names is not looked at.
const KINDS_MAX: usize = 10;

/// Group, version and kind, in the order in which they are told.
type Named = (String, String, String);

/// `expressionWarnings` of a policy, from its spec.
pub fn warnings(spec: &Value) -> Vec<Value> {
    let scopes: Vec<(Named, Scope)> = kinds(spec)
        .into_iter()
        .filter_map(|kind| Some((kind.clone(), scope(&kind, spec)?)))
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in json::list(spec, "validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = json::text(validation, field);
            if text.is_empty() {
                continue;
            }
            let found = scopes.iter().filter_map(|((group, version, kind), scope)| {
                let problem = scope.check(text).err()?;
                Some(format!("{group}/{version}, Kind={kind}: {problem}\n"))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": found.join("\n"),
                }));
            }
        }
    }
    warnings
}

/// Those that rules name without wildcards.
fn kinds(spec: &Value) -> BTreeSet<Named> {
    let mut found = BTreeSet::new();
    for rule in json::list(json::get(spec, "matchConstraints"), "resourceRules") {
        let texts = |name: &str| {
            let all = json::list(rule, name).iter().filter_map(Value::as_str);
            let mut all: Vec<&str> = all.collect();
            all.sort_unstable();
            all
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|one| one.contains('*')) {
            continue;
        }
        let resources = texts("resources");
        let resources = resources.iter().filter(|one| !one.contains(['*', '/']));
        let named = groups.iter().flat_map(|group| {
            let resources = resources.clone();
            let pairs = versions.iter().flat_map(move |version| {
                resources.clone().map(move |resource| (*version, *resource))
            });
            pairs.filter_map(|(version, resource)| catalogue::find(group, version, resource))
        });
        let kinds = named.take(KINDS_MAX);
        found.extend(kinds.map(|row| {
            let [group, version, kind] = [row.group, row.version, row.kind].map(str::to_owned);
            (group, version, kind)
        }));
    }
    found
}

/// What expressions may name when they are about a kind; `None` where nothing is known of it.
fn scope((group, version, kind): &Named, spec: &Value) -> Option<Scope> {
    let row = catalogue::by_kind(group, version, kind)?;
    let params = json::some(spec, "paramKind");
    let mut environment = Environment::default().within(&Budget::default());
    let of = environment.of_kind(row.schema)?;
    let of_params = params.map(|params| {
        let (version, kind) = (json::text(params, "apiVersion"), json::text(params, "kind"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let row = catalogue::by_kind(group, version, kind);
        row.and_then(|row| environment.of_kind(row.schema))
            .unwrap_or(Type::Dyn)
    });
    let variables = json::list(spec, "variables");
    Some(Scope::of_kinds(environment, &of, of_params, variables))
}

#[cfg(test)]
mod tests;
