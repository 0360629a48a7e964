//! Validation of flow schemas: whose requests, and which.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, flow_control};
use crate::object::Object;
use crate::{json, names};
use serde_json::Value;

const PRECEDENCE_MAX: i64 = 10_000;
/// The one schema that comes before all others.
const EXEMPT: &str = "exempt";
const EVERY: &str = "*";
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const METHODS: &[&str] = &["ByNamespace", "ByUser"];
const SUBJECT_KINDS: &[&str] = &["Group", "ServiceAccount", "User"];

/// What is wrong with the spec.
pub fn spec(object: &Object) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let mut errors = precedence(spec, object.name(), &path);
    if let Some(method) = json::some(spec, "distinguisherMethod")
        && !METHODS.contains(&json::text(method, "type"))
    {
        let path = path.child("distinguisherMethod").child("type");
        let error = FieldError::not_supported(&path, method.clone(), METHODS);
        errors.push(error.as_go("io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod"));
    }
    errors.extend(level(spec, &path));
    for (index, rule) in json::list(spec, "rules").iter().enumerate() {
        errors.extend(rule_with_subjects(rule, &path.child("rules").index(index)));
    }
    if let Some(fixed) = flow_control::fixed_spec("FlowSchema", object.name())
        && !json::same(fixed, spec)
    {
        let detail = format!("spec of '{}' must equal the fixed value", object.name());
        let error = FieldError::invalid(&path, spec.clone(), detail);
        errors.push(error.as_go("io.k8s.api.flowcontrol.v1.FlowSchemaSpec"));
    }
    errors
}

fn precedence(spec: &Value, name: &str, path: &Path) -> ErrorList {
    let path = path.child("matchingPrecedence");
    let precedence = json::int(spec, "matchingPrecedence").unwrap_or(0);
    let mut errors = ErrorList::new();
    let mut wrong = |detail: String| errors.push(FieldError::invalid(&path, precedence, detail));
    if precedence <= 0 {
        wrong("must be a positive value".to_owned());
    }
    if precedence > PRECEDENCE_MAX {
        wrong(format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != EXEMPT {
        wrong("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }
    errors
}

fn level(spec: &Value, path: &Path) -> ErrorList {
    let path = path.child("priorityLevelConfiguration").child("name");
    let name = json::text(json::get(spec, "priorityLevelConfiguration"), "name");
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(FieldError::required(
            &path,
            "must reference a priority level",
        ));
    } else {
        checks::each(&mut errors, &path, name, names::dns_subdomain(name));
    }
    errors
}

fn rule_with_subjects(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let subjects = path.child("subjects");
    for (index, one) in json::list(rule, "subjects").iter().enumerate() {
        errors.extend(subject(one, &subjects.index(index)));
    }
    if json::list(rule, "subjects").is_empty() {
        let detail = "subjects must contain at least one value";
        errors.push(FieldError::required(&subjects, detail));
    }
    let [of_resources, others] = ["resourceRules", "nonResourceRules"].map(|n| json::list(rule, n));
    if of_resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (index, rule) in of_resources.iter().enumerate() {
        errors.extend(resource_rule(
            rule,
            &path.child("resourceRules").index(index),
        ));
    }
    for (index, rule) in others.iter().enumerate() {
        let path = path.child("nonResourceRules").index(index);
        errors.extend(non_resource_rule(rule, &path));
    }
    errors
}

fn subject(subject: &Value, path: &Path) -> ErrorList {
    let kind = json::text(subject, "kind");
    let mut errors = ErrorList::new();
    match kind {
        "ServiceAccount" => errors.extend(service_account(subject, &path.child("serviceAccount"))),
        "User" => errors.extend(named(subject, "user", kind, &path.child("user"))),
        "Group" => errors.extend(named(subject, "group", kind, &path.child("group"))),
        other => {
            let path = path.child("kind");
            errors.push(FieldError::not_supported(&path, other, SUBJECT_KINDS));
            return errors;
        }
    }
    for (field, own) in [
        ("serviceAccount", "ServiceAccount"),
        ("user", "User"),
        ("group", "Group"),
    ] {
        if own != kind && json::has(subject, field) {
            let detail = format!("{field} is forbidden when subject kind is not '{own}'");
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    errors
}

fn named(subject: &Value, field: &str, kind: &str, path: &Path) -> ErrorList {
    let Some(subject) = json::some(subject, field) else {
        let detail = format!("{field} is required when subject kind is '{kind}'");
        return vec![FieldError::required(path, detail)];
    };
    let mut errors = ErrorList::new();
    checks::required(&mut errors, subject, "name", path);
    errors
}

fn service_account(subject: &Value, path: &Path) -> ErrorList {
    let Some(account) = json::some(subject, "serviceAccount") else {
        let detail = "serviceAccount is required when subject kind is 'ServiceAccount'";
        return vec![FieldError::required(path, detail)];
    };
    let mut errors = ErrorList::new();
    checks::required(&mut errors, account, "name", path);
    let name = json::text(account, "name");
    if !name.is_empty() && name != EVERY {
        let path = path.child("name");
        checks::each(&mut errors, &path, name, names::dns_subdomain(name));
    }
    let namespace = json::text(account, "namespace");
    let path = path.child("namespace");
    if namespace.is_empty() {
        let detail = "must specify namespace for service account";
        errors.push(FieldError::required(&path, detail));
    } else {
        checks::each(&mut errors, &path, namespace, names::dns_label(namespace));
    }
    errors
}

fn has_every(list: &[Value]) -> bool {
    list.iter().any(|one| one == EVERY)
}

/// A list of which `*` stands alone.
fn every_is_alone(list: &[Value], what: &str, path: &Path) -> ErrorList {
    if has_every(list) && list.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        return vec![FieldError::invalid(path, list, detail)];
    }
    ErrorList::new()
}

fn verbs(rule: &Value, path: &Path) -> ErrorList {
    let path = path.child("verbs");
    let verbs = json::list(rule, "verbs");
    if verbs.is_empty() {
        let detail = "verbs must contain at least one value";
        return vec![FieldError::required(&path, detail)];
    }
    let known = |verb: &Value| VERBS.contains(&verb.as_str().unwrap_or(""));
    if !has_every(verbs) && !verbs.iter().all(known) {
        return vec![FieldError::not_supported(&path, verbs, VERBS)];
    }
    every_is_alone(verbs, "verbs", &path)
}

fn resource_rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = verbs(rule, path);
    for (field, one, what) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let (list, path) = (json::list(rule, field), path.child(field));
        if list.is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.push(FieldError::required(&path, detail));
        }
        errors.extend(every_is_alone(list, what, &path));
    }
    errors.extend(namespaces(rule, &path.child("namespaces")));
    errors
}

fn namespaces(rule: &Value, path: &Path) -> ErrorList {
    let namespaces = json::list(rule, "namespaces");
    if namespaces.is_empty() && !json::flag(rule, "clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one \
                      namespace";
        return vec![FieldError::required(path, detail)];
    }
    if has_every(namespaces) {
        return every_is_alone(namespaces, "namespaces", path);
    }
    let mut errors = ErrorList::new();
    for (index, namespace) in namespaces.iter().enumerate() {
        let namespace = namespace.as_str().unwrap_or("");
        let details = names::dns_label(namespace).into_iter().map(|detail| {
            format!("each member of this list must be '*' or a DNS-1123 label; {detail}")
        });
        let path = path.index(index);
        checks::each(&mut errors, &path, namespace, details.collect());
    }
    errors
}

fn non_resource_rule(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = verbs(rule, path);
    let urls = json::list(rule, "nonResourceURLs");
    let path = path.child("nonResourceURLs");
    if urls.is_empty() {
        let detail = "nonResourceURLs must contain at least one value";
        errors.push(FieldError::required(&path, detail));
    } else if has_every(urls) {
        errors.extend(every_is_alone(urls, "non-resource URLs", &path));
    } else {
        for (index, url) in urls.iter().enumerate() {
            let url = url.as_str().unwrap_or("");
            if let Some(detail) = url_problem(url) {
                errors.push(FieldError::invalid(&path.index(index), url, detail));
            }
        }
    }
    errors
}

/// Of a path with an end that may be a star.
fn url_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    if url.is_empty() {
        Some("must not be empty")
    } else if url == "/" {
        None
    } else if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if url.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || stars == 1 && !url.ends_with("/*") {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}
