//! The RBAC roles and bindings that the server brings itself, and what to do about those that
//! are there already.
//!
//! As upstream, what the operator took away comes back and what they added stays, unless the
//! object is annotated `rbac.authorization.kubernetes.io/autoupdate: "false"`.

mod reconcile; // Brings what is there in line, over the API.

pub use reconcile::{ReconcileError, reconcile};
pub(crate) use reconcile::{refused, send};

use crate::authorize::covers::uncovered;
use crate::authorize::rbac::GROUP;
use crate::authorize::rule::{self, Rule};
use coracle_api::object::Object;
use serde_json::{Value, json};

/// What kube-apiserver v1.36 creates, one object a line.
const UPSTREAM: &str = include_str!("../facts/rbac.json");
/// What enrolment needs, as kubeadm binds it.
const OWN: &str = include_str!("../facts/rbac-coracle.json");

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// All objects, complete but for what the server fills in on create. Roles before bindings.
pub fn objects() -> Vec<Object> {
    let mut objects: Vec<Object> = [UPSTREAM, OWN]
        .into_iter()
        .flat_map(facts)
        .map(|fact| complete(&fact))
        .collect();
    objects.sort_by_key(|object| object.kind().ends_with("Binding"));
    objects
}

/// The rules of `system:node`, which the node authorizer grants.
pub fn node_rules() -> Vec<Rule> {
    facts(UPSTREAM)
        .iter()
        .find(|fact| fact["kind"] == "ClusterRole" && fact["name"] == "system:node")
        .map(|fact| rule::rules(fact["rules"].as_array().map_or(&[], Vec::as_slice)))
        .expect("the facts hold the role of nodes")
}

fn facts(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("the facts are part of the program and tested")
}

fn complete(fact: &Value) -> Object {
    let kind = fact["kind"].as_str().expect("every fact has a kind");
    let mut object = Object::new("rbac.authorization.k8s.io/v1", kind);
    object.set(&["metadata", "name"], fact["name"].clone());
    if let Some(namespace) = fact.get("namespace") {
        object.set(&["metadata", "namespace"], namespace.clone());
    }
    object.set(&["metadata", "annotations"], json!({ AUTOUPDATE: "true" }));
    let mut labels = fact.get("labels").cloned().unwrap_or(json!({}));
    labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
    object.set(&["metadata", "labels"], labels);
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if let Some(value) = fact.get(field) {
            object.set(&[field], value.clone());
        }
    }
    if kind.ends_with("Role") && object.get(&["rules"]).is_none() {
        object.set(&["rules"], json!([]));
    }
    object
}

/// Where an object is served.
pub fn plural(object: &Object) -> &'static str {
    match object.kind() {
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "Role" => "roles",
        _ => "rolebindings",
    }
}

/// What to do about an object that is there already.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Nothing,
    Update(Object),
    /// A binding to another role: `roleRef` cannot change.
    Recreate,
}

pub fn plan(existing: &Object, wanted: &Object) -> Step {
    if existing.annotation(AUTOUPDATE) == Some("false") {
        return Step::Nothing;
    }
    if !same_role(existing, wanted) {
        return Step::Recreate;
    }
    let mut merged = existing.clone();
    for field in ["labels", "annotations"] {
        for (key, value) in wanted.string_map(&["metadata", field]) {
            if !existing
                .string_map(&["metadata", field])
                .any(|(own, _)| own == key)
            {
                merged.set(&["metadata", field, key], value.into());
            }
        }
    }
    if wanted.kind().ends_with("Binding") {
        merge_subjects(&mut merged, wanted);
    } else {
        merge_rules(&mut merged, wanted);
    }
    if merged == *existing {
        Step::Nothing
    } else {
        Step::Update(merged)
    }
}

fn same_role(existing: &Object, wanted: &Object) -> bool {
    ["kind", "name"]
        .iter()
        .all(|field| existing.str(&["roleRef", field]) == wanted.str(&["roleRef", field]))
}

/// The rules of an aggregated role are gathered by its controller, so those are left alone once
/// there are any; what selects them is ours.
fn merge_rules(merged: &mut Object, wanted: &Object) {
    let selectors = ["aggregationRule", "clusterRoleSelectors"];
    if wanted.get(&["aggregationRule"]).is_none() {
        merged.remove(&["aggregationRule"]);
    } else {
        let mut own = merged.list(&selectors).to_vec();
        let wanted = wanted.list(&selectors).iter();
        let missing: Vec<Value> = wanted.filter(|one| !own.contains(one)).cloned().collect();
        if !missing.is_empty() {
            own.extend(missing);
            merged.set(&selectors, Value::Array(own));
        }
        if !merged.list(&["rules"]).is_empty() {
            return;
        }
    }
    let missing = uncovered(&rule::of_role(merged), &rule::of_role(wanted));
    if missing.is_empty() {
        return;
    }
    let mut rules = merged.list(&["rules"]).to_vec();
    rules.extend(
        missing
            .iter()
            .filter_map(|rule| serde_json::to_value(rule).ok()),
    );
    merged.set(&["rules"], Value::Array(rules));
}

fn merge_subjects(merged: &mut Object, wanted: &Object) {
    let same = |a: &Value, b: &Value| {
        ["apiGroup", "kind", "name", "namespace"]
            .iter()
            .all(|field| a.get(*field) == b.get(*field))
    };
    let mut subjects = merged.list(&["subjects"]).to_vec();
    let before = subjects.len();
    for subject in wanted.list(&["subjects"]) {
        if !subjects.iter().any(|own| same(own, subject)) {
            subjects.push(subject.clone());
        }
    }
    if subjects.len() > before {
        merged.set(&["subjects"], Value::Array(subjects));
    }
}

/// The path of one object, or of its collection when `name` is false.
pub fn path(object: &Object, name: bool) -> String {
    let mut path = format!("/apis/{GROUP}/v1");
    if !object.namespace().is_empty() {
        path.push_str(&format!("/namespaces/{}", object.namespace()));
    }
    path.push('/');
    path.push_str(plural(object));
    if name {
        path.push('/');
        path.push_str(object.name());
    }
    path
}

#[cfg(test)]
mod tests;
