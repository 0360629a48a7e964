//! Webhooks: what they are asked about, and where they are.

use super::{FAILURE_POLICIES, REINVOCATION_POLICIES, expressions, rules};
use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, column};
use crate::object::Object;
use crate::resource::Column;
use crate::{json, label_selector, names, print, url};
use serde_json::{Value, json};

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("Webhooks", "integer", "How many webhooks there are in it."),
    row::AGE,
];

const TIMEOUT_SECONDS_DEFAULT: i64 = 10;
const TIMEOUT_SECONDS: std::ops::RangeInclusive<i64> = 1..=30;
const PORT_DEFAULT: i64 = 443;
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
/// Of the AdmissionReview that is sent.
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
/// In the name of a webhook.
const SEGMENTS_MIN: usize = 3;

/// Which kind of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Judge,
    Change,
}

pub fn default(object: &mut Object, does: Does) {
    let webhooks = object.get_mut(&["webhooks"]).and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        json::default(webhook, "failurePolicy", "Fail");
        json::default(webhook, "matchPolicy", "Equivalent");
        json::default(webhook, "namespaceSelector", json!({}));
        json::default(webhook, "objectSelector", json!({}));
        json::default(webhook, "timeoutSeconds", TIMEOUT_SECONDS_DEFAULT);
        if does == Does::Change {
            json::default(webhook, "reinvocationPolicy", "Never");
        }
        rules::default_scopes(webhook, "rules");
        if let Some(config) = json::object_mut(webhook, "clientConfig") {
            default_port(config);
        }
    }
}

/// The port of the service that a client is configured for.
pub fn default_port(config: &mut Value) {
    if let Some(service) = json::object_mut(config, "service") {
        json::default(service, "port", PORT_DEFAULT);
    }
}

pub fn cells(object: &Object, now: i64) -> Vec<Value> {
    vec![
        object.name().into(),
        object.list(&["webhooks"]).len().into(),
        print::age_of(object, now),
    ]
}

/// What is wrong with a configuration.
pub fn validate(object: &Object, does: Does) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = Vec::new();
    let budget = Budget::default();
    for (index, webhook) in object.list(&["webhooks"]).iter().enumerate() {
        let path = Path::root("webhooks").index(index);
        errors.extend(one(webhook, does, &budget, &path));
        let versions = json::list(webhook, "admissionReviewVersions");
        errors.extend(review_versions(
            versions,
            &path.child("admissionReviewVersions"),
        ));
        let name = json::text(webhook, "name");
        if name.is_empty() {
            continue;
        }
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        seen.push(name);
    }
    errors
}

fn one(webhook: &Value, does: Does, budget: &Budget, path: &Path) -> ErrorList {
    let mut errors = full_name(json::text(webhook, "name"), &path.child("name"));
    for (index, rule) in json::list(webhook, "rules").iter().enumerate() {
        let path = path.child("rules").index(index);
        errors.extend(rules::with_operations(rule, &path));
    }
    let mut choice = |field: &str, supported: &[&str]| {
        if let Some(value) = json::some(webhook, field) {
            let value = value.as_str().unwrap_or("");
            checks::one_of(&mut errors, value, supported, &path.child(field));
        }
    };
    choice("failurePolicy", FAILURE_POLICIES);
    choice("matchPolicy", rules::MATCH_POLICIES);
    choice("sideEffects", SIDE_EFFECTS);
    if !json::has(webhook, "sideEffects") {
        let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        errors.push(FieldError::required(&path.child("sideEffects"), detail));
    }
    if let Some(seconds) = json::int(webhook, "timeoutSeconds")
        && !TIMEOUT_SECONDS.contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        let path = path.child("timeoutSeconds");
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = json::some(webhook, field) {
            errors.extend(label_selector::validate(selector, &path.child(field)));
        }
    }
    if does == Does::Change
        && let Some(policy) = json::some(webhook, "reinvocationPolicy")
    {
        let policy = policy.as_str().unwrap_or("");
        let path = path.child("reinvocationPolicy");
        checks::one_of(&mut errors, policy, REINVOCATION_POLICIES, &path);
    }
    let config = json::get(webhook, "clientConfig");
    errors.extend(client_config(config, &path.child("clientConfig")));
    errors.extend(expressions::match_conditions(
        json::list(webhook, "matchConditions"),
        false,
        budget,
        &path.child("matchConditions"),
    ));
    errors
}

fn full_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let details = names::dns_subdomain(name);
    let detail = if !details.is_empty() {
        details.join(",")
    } else if name.split('.').count() < SEGMENTS_MIN {
        "should be a domain with at least three segments separated by dots".to_owned()
    } else {
        return ErrorList::new();
    };
    vec![FieldError::invalid(path, name, detail)]
}

/// The versions of a review that a webhook takes; one at least is known here.
pub fn review_versions(versions: &[Value], path: &Path) -> ErrorList {
    let known = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        let detail = format!("must specify one of {known}");
        return vec![FieldError::required(path, detail)];
    }
    let mut errors = ErrorList::new();
    for (index, version) in versions.iter().enumerate() {
        let (path, text) = (path.index(index), version.as_str().unwrap_or(""));
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(&path, text, "duplicate version"));
            continue;
        }
        checks::each(&mut errors, &path, text, names::dns_1035_label(text));
    }
    let is_known = |version: &Value| REVIEW_VERSIONS.contains(&version.as_str().unwrap_or(""));
    if !versions.iter().any(is_known) {
        let detail = format!("must include at least one of {known}");
        errors.push(FieldError::invalid(path, versions, detail));
    }
    errors
}

/// Either a URL or a service.
pub fn client_config(config: &Value, path: &Path) -> ErrorList {
    match (json::some(config, "url"), json::some(config, "service")) {
        (Some(text), None) => https_url(text.as_str().unwrap_or(""), &path.child("url")),
        (None, Some(one)) => service(one, &path.child("service")),
        _ => {
            let detail = "exactly one of url or service is required";
            vec![FieldError::required(path, detail)]
        }
    }
}

fn https_url(text: &str, path: &Path) -> ErrorList {
    const FORM: &str = "; desired format: https://host[/path]";
    let parsed = match url::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let detail = format!("url must be a valid URL: {error}{FORM}");
            return vec![FieldError::required(path, detail)];
        }
    };
    let mut errors = ErrorList::new();
    let mut wrong = |value: &str, detail: &str| {
        errors.push(FieldError::invalid(path, value, detail));
    };
    if parsed.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        wrong(&parsed.scheme, &detail);
    }
    if parsed.host.is_empty() {
        wrong("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = &parsed.user {
        wrong(user, "user information is not permitted in the URL");
    }
    if !parsed.fragment.is_empty() {
        wrong(&parsed.fragment, "fragments are not permitted in the URL");
    }
    if !parsed.query.is_empty() {
        wrong(
            &parsed.query,
            "query parameters are not permitted in the URL",
        );
    }
    errors
}

/// A service, by its name; upstream reports an empty name at the namespace, and the other way
/// round.
fn service(service: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
        if json::text(service, field).is_empty() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let port = json::int(service, "port").unwrap_or(0);
    let details = names::port_number(port);
    if !details.is_empty() {
        let detail = format!("port is not valid: {}", details.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    let of_path = json::text(service, "path");
    errors.extend(service_path(of_path, &path.child("path")));
    errors
}

fn service_path(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut wrong = |detail: String| errors.push(FieldError::invalid(path, text, detail));
    if text.is_empty() || text == "/" {
        return errors;
    }
    if text == "//" {
        wrong("segment[0] may not be empty".to_owned());
        return errors;
    }
    if !text.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    // As upstream: the first byte is taken for the slash.
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest
        .strip_suffix('/')
        .unwrap_or(rest)
        .split('/')
        .enumerate()
    {
        if step.is_empty() {
            wrong(format!("segment[{index}] may not be empty"));
            continue;
        }
        for detail in names::dns_subdomain(step) {
            wrong(format!("segment[{index}]: {detail}"));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
