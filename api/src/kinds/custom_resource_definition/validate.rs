//! Validation of definitions: names, versions, conversion, the status.
//!
//! As upstream, whose internal form has one schema, one set of subresources and one of columns
//! where all versions have the same: what is wrong with those is reported under `spec`, and what
//! is wrong with one version's own under `spec.versions`.

use super::versions::{self, Shared};
use crate::field::{ErrorList, FieldError, Path};
use crate::go_value;
use crate::kinds::admission_registration::webhook;
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names, url};
use serde_json::Value;

/// Says that an API in a group of Kubernetes' own was approved.
const APPROVED: &str = "api-approved.kubernetes.io";
const VERSION_TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.\
                            CustomResourceDefinitionVersion";

pub fn create(object: &Object) -> ErrorList {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let mut errors = ErrorList::new();
    let [plural, group] = [
        json::at(spec, &["names", "plural"]),
        json::get(spec, "group"),
    ]
    .map(|text| text.as_str().unwrap_or(""));
    if !object.name().is_empty() && object.name() != format!("{plural}.{group}") {
        let path = Path::root("metadata").child("name");
        let detail = r#"must be spec.names.plural+"."+spec.group"#;
        errors.push(FieldError::invalid(&path, object.name(), detail));
    }
    errors.extend(of_spec(spec, &Value::Null));
    errors.extend(status(object));
    errors.extend(stored_versions(object));
    errors.extend(approval(object, None));
    errors.extend(unknown_fields(spec));
    errors
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let [spec, before] = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
    let path = Path::root("spec");
    let mut errors = of_spec(spec, before);
    let [names, old_names] = [spec, before].map(|spec| json::get(spec, "names"));
    if is_established(old) {
        checks::immutable(&mut errors, spec, before, "scope", &path);
        checks::immutable(&mut errors, names, old_names, "kind", &path.child("names"));
    }
    checks::immutable(&mut errors, spec, before, "group", &path);
    let of_names = path.child("names");
    checks::immutable(&mut errors, names, old_names, "plural", &of_names);
    errors.extend(status(new));
    errors.extend(stored_versions(new));
    errors.extend(approval(new, Some(old)));
    if !json::flag(before, "preserveUnknownFields") {
        errors.extend(unknown_fields(spec));
    }
    errors
}

pub fn status(object: &Object) -> ErrorList {
    let names = object.get(&["status", "acceptedNames"]);
    let path = Path::root("status").child("acceptedNames");
    names_of(names.unwrap_or(&Value::Null), &path)
}

fn is_established(object: &Object) -> bool {
    object
        .list(&["status", "conditions"])
        .iter()
        .any(|one| one["type"] == "Established" && one["status"] == "True")
}

fn of_spec(spec: &Value, before: &Value) -> ErrorList {
    let path = Path::root("spec");
    let mut errors = group(json::text(spec, "group"), &path.child("group"));
    let scope = json::text(spec, "scope");
    let scopes = &["Cluster", "Namespaced"];
    checks::required_one_of(&mut errors, scope, scopes, &path.child("scope"));
    let versions = json::list(spec, "versions");
    let shared = Shared::of(versions, json::list(before, "versions"));
    errors.extend(versions::schemas_are_there(versions, &path));
    if json::flag(spec, "preserveUnknownFields") && versions::have_defaults(versions) {
        let detail = "must be false in order to use defaults in the schema";
        let path = path.child("preserveUnknownFields");
        errors.push(FieldError::invalid(&path, true, detail));
    }
    let of_versions = path.child("versions");
    for (index, version) in versions.iter().enumerate() {
        errors.extend(versions::own(version, &shared, &of_versions.index(index)));
    }
    let is_null = json::get(spec, "versions").is_null();
    let rest = shared.rest(versions);
    errors.extend(version_list(&rest, is_null, &of_versions));
    errors.extend(required_names(spec, &path.child("names")));
    errors.extend(versions::shared(&shared, &path));
    errors.extend(conversion(spec, &path.child("conversion")));
    errors
}

fn group(group: &str, path: &Path) -> ErrorList {
    if group.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let details = names::dns_subdomain(group);
    let detail = if !details.is_empty() {
        details.join(",")
    } else if !group.contains('.') {
        "should be a domain with at least one dot".to_owned()
    } else {
        return ErrorList::new();
    };
    vec![FieldError::invalid(path, group, detail)]
}

fn version_list(versions: &[Value], is_null: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut wrong = |detail: &str| {
        let shown = if is_null {
            "null".to_owned()
        } else {
            go_value::internal_list(VERSION_TYPE, versions)
        };
        let error = FieldError::invalid(path, versions, detail);
        errors.push(error.shown_as(shown));
    };
    let name = |version: &Value| json::text(version, "name").to_owned();
    let mut seen: Vec<String> = versions.iter().map(name).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        wrong("must contain unique version names");
    }
    let storing = versions.iter().filter(|one| json::flag(one, "storage"));
    if storing.count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    if let Some(first) = versions.first().map(name).filter(|name| !name.is_empty()) {
        let path = Path::root("spec").child("version");
        join_invalid(&mut errors, &path, &first, &names::dns_1035_label(&first));
    }
    errors
}

/// All that is wrong with a name, in one error.
pub fn join_invalid(errors: &mut ErrorList, path: &Path, value: &str, details: &[String]) {
    if !details.is_empty() {
        errors.push(FieldError::invalid(path, value, details.join(",")));
    }
}

fn required_names(spec: &Value, path: &Path) -> ErrorList {
    let names = json::get(spec, "names");
    let mut errors = ErrorList::new();
    for field in ["plural", "singular", "kind", "listKind"] {
        checks::required(&mut errors, names, field, path);
    }
    errors.extend(names_of(names, path));
    errors
}

fn names_of(value: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |field: &str| json::text(value, field);
    for field in ["plural", "singular"] {
        if !text(field).is_empty() {
            let details = names::dns_1035_label(text(field));
            join_invalid(&mut errors, &path.child(field), text(field), &details);
        }
    }
    for field in ["kind", "listKind"] {
        let details = names::dns_1035_label(&text(field).to_lowercase());
        if !text(field).is_empty() && !details.is_empty() {
            let details = details.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {details}");
            errors.push(FieldError::invalid(&path.child(field), text(field), detail));
        }
    }
    let mut labels = |field: &str| {
        for (index, label) in json::list(value, field).iter().enumerate() {
            let label = label.as_str().unwrap_or("");
            let details = names::dns_1035_label(label);
            join_invalid(
                &mut errors,
                &path.child(field).index(index),
                label,
                &details,
            );
        }
    };
    labels("shortNames");
    labels("categories");
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let detail = "kind and listKind may not be the same";
        let path = path.child("listKind");
        errors.push(FieldError::invalid(&path, text("listKind"), detail));
    }
    errors
}

fn conversion(spec: &Value, path: &Path) -> ErrorList {
    let conversion = json::get(spec, "conversion");
    let strategy = json::text(conversion, "strategy");
    let of_strategy = path.child("strategy");
    let mut errors = ErrorList::new();
    if strategy != "None" && json::flag(spec, "preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&of_strategy, strategy, detail));
    }
    checks::required_one_of(&mut errors, strategy, &["None", "Webhook"], &of_strategy);
    let webhook = json::get(conversion, "webhook");
    let versions = json::list(webhook, "conversionReviewVersions");
    let config = json::some(webhook, "clientConfig");
    let (of_config, of_versions) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(&of_config, detail));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&of_versions, detail));
        }
        return errors;
    }
    match config {
        None => {
            let detail = "required when strategy is set to Webhook";
            errors.push(FieldError::required(&of_config, detail));
        }
        Some(config) => errors.extend(webhook::client_config(config, &of_config)),
    }
    if versions.is_empty() {
        errors.push(FieldError::required(&of_versions, ""));
    } else {
        errors.extend(webhook::review_versions(versions, &of_versions));
    }
    errors
}

/// Every version that something is stored in stays.
fn stored_versions(object: &Object) -> ErrorList {
    let path = Path::root("status").child("storedVersions");
    let stored = object.list(&["status", "storedVersions"]);
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return vec![FieldError::invalid(&path, Value::Null, detail)];
    }
    let versions = object.list(&["spec", "versions"]);
    let mut errors = ErrorList::new();
    for version in versions
        .iter()
        .filter(|version| json::flag(version, "storage"))
    {
        let name = json::text(version, "name");
        if !stored.iter().any(|stored| stored == name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, stored, detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let name = name.as_str().unwrap_or("");
        if versions
            .iter()
            .any(|version| json::text(version, "name") == name)
        {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains persisted \
             in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(index), name, detail));
    }
    errors
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval_state(object: &Object) -> Approval {
    let annotation = object.annotation(APPROVED).unwrap_or("");
    let is_url =
        url::parse(annotation).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty());
    match annotation {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Approved,
        _ => Approval::Invalid,
    }
}

/// Groups of Kubernetes' own are not for everybody.
fn approval(new: &Object, old: Option<&Object>) -> ErrorList {
    let group = new.str(&["spec", "group"]);
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let below = group.strip_suffix(domain);
        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    });
    let state = approval_state(new);
    if !is_protected || old.is_some_and(|old| approval_state(old) == state) {
        return ErrorList::new();
    }
    let path = Path::root("metadata").child("annotations").key(APPROVED);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let detail = format!("protected groups must have approval annotation {APPROVED:?}");
    match state {
        Approval::Missing => vec![FieldError::required(&path, format!("{detail}, {see}"))],
        Approval::Invalid => {
            let value = new.annotation(APPROVED).unwrap_or("");
            let how = "with either a URL or a reason starting with \"unapproved\"";
            let detail = format!("{detail} {how}, {see}");
            vec![FieldError::invalid(&path, value, detail)]
        }
        Approval::Approved | Approval::Bypassed => ErrorList::new(),
    }
}

fn unknown_fields(spec: &Value) -> ErrorList {
    if !json::flag(spec, "preserveUnknownFields") {
        return ErrorList::new();
    }
    let path = Path::root("spec").child("preserveUnknownFields");
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                  spec.versions[*].schema instead";
    vec![FieldError::invalid(&path, true, detail)]
}
