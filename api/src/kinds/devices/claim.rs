//! A DeviceClaim: requests for devices, constraints between them, configuration.

use super::{CONFIGURATIONS_MAX, configuration, each, each_of_set, name_key, names, selectors};
use super::{text_key, toleration};
use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const MODES: &[&str] = &["All", "ExactCount"];

/// Defaults of a ResourceClaimSpec.
pub fn default(spec: &mut Value) {
    json::default(spec, "devices", json!({}));
    let Some(devices) = json::object_mut(spec, "devices") else {
        return;
    };
    // The list shows though there is none.
    if json::list(devices, "requests").is_empty() {
        devices["requests"] = Value::Null;
    }
    for request in json::list_mut(devices, "requests") {
        if let Some(exactly) = json::object_mut(request, "exactly") {
            default_request(exactly);
        }
        for alternative in json::list_mut(request, "firstAvailable") {
            default_request(alternative);
        }
    }
}

fn default_request(request: &mut Value) {
    json::default_text(request, "allocationMode", "ExactCount");
    if json::text(request, "allocationMode") == "ExactCount" {
        json::default_int(request, "count", 1);
    }
    for toleration in json::list_mut(request, "tolerations") {
        json::default_text(toleration, "operator", "Equal");
    }
    let sizes = request.pointer_mut("/capacity/requests");
    for (_, size) in sizes.and_then(Value::as_object_mut).into_iter().flatten() {
        crate::pod_spec::defaults::canonical(size);
    }
}

/// The requests of a claim by name, each with its alternatives.
#[derive(Debug)]
pub struct Requests<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Requests<'a> {
    /// `devices` is the claim's.
    pub fn of(devices: &'a Value) -> Self {
        let requests = json::list(devices, "requests").iter();
        let named = requests.map(|request| {
            let alternatives = json::list(request, "firstAvailable").iter();
            let names = alternatives.map(|one| json::text(one, "name")).collect();
            (json::text(request, "name"), names)
        });
        Self(named.collect())
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, alternative)) => self
                .0
                .get(request)
                .is_some_and(|names| names.contains(alternative)),
        }
    }

    /// A reference to a request, or to one of its alternatives.
    pub fn reference(&self, name: &str, path: &Path) -> ErrorList {
        const DETAIL: &str = "must be the name of a request in the claim or the name of a request \
                              and a subrequest separated by '/'";
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 2 {
            return vec![FieldError::invalid(path, name, DETAIL)];
        }
        let mut errors: ErrorList = parts
            .into_iter()
            .flat_map(|part| names::label(part, path))
            .collect();
        if !self.has(name) {
            errors.push(FieldError::invalid(path, name, DETAIL));
        }
        errors
    }

    /// A list of references.
    pub fn references(&self, names: &[Value], path: &Path) -> ErrorList {
        let check = |name: &Value, path: &Path| self.reference(&text_key(name), path);
        each_of_set(names, REQUESTS_MAX, path, check, text_key)
    }
}

/// What is wrong with a ResourceClaimSpec.
pub fn spec(spec: &Value, path: &Path) -> ErrorList {
    let devices = json::get(spec, "devices");
    let path = path.child("devices");
    let requests = Requests::of(devices);
    let all = json::list(devices, "requests");
    let budget = Budget::default();
    let mut errors = each_of_set(
        all,
        REQUESTS_MAX,
        &path.child("requests"),
        |one, path| request(one, &budget, path),
        name_key,
    );
    errors.extend(each(
        json::list(devices, "constraints"),
        CONSTRAINTS_MAX,
        &path.child("constraints"),
        |item, path| constraint(item, &requests, path),
    ));
    errors.extend(each(
        json::list(devices, "config"),
        CONFIGURATIONS_MAX,
        &path.child("config"),
        |item, path| {
            let names = json::list(item, "requests");
            let mut errors = requests.references(names, &path.child("requests"));
            errors.extend(configuration(item, path));
            errors
        },
    ));
    errors
}

fn request(request: &Value, budget: &Budget, path: &Path) -> ErrorList {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    let mut errors = names::label(json::text(request, "name"), &path.child("name"));
    let alternatives = json::list(request, "firstAvailable");
    match (json::some(request, "exactly"), alternatives) {
        (None, []) => errors.push(FieldError::required(path, ONE)),
        (Some(exactly), []) => errors.extend(exact(exactly, budget, &path.child("exactly"))),
        (None, alternatives) => {
            let path = path.child("firstAvailable");
            errors.extend(each_of_set(
                alternatives,
                ALTERNATIVES_MAX,
                &path,
                |one, path| alternative(one, budget, path),
                name_key,
            ));
        }
        (Some(_), _) => {
            let detail = format!("{ONE}, but multiple fields are set");
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
    }
    errors
}

fn alternative(alternative: &Value, budget: &Budget, path: &Path) -> ErrorList {
    let mut errors = names::label(json::text(alternative, "name"), &path.child("name"));
    errors.extend(exact(alternative, budget, path));
    errors
}

fn exact(request: &Value, budget: &Budget, path: &Path) -> ErrorList {
    let class_path = path.child("deviceClassName");
    let mut errors = match json::text(request, "deviceClassName") {
        "" => vec![FieldError::required(&class_path, "")],
        class => crate::kinds::storage::class_name(class, &class_path),
    };
    let all = json::list(request, "selectors");
    errors.extend(selectors(all, budget, &path.child("selectors")));
    errors.extend(count(request, path));
    let tolerations = json::list(request, "tolerations").iter().enumerate();
    for (index, one) in tolerations {
        errors.extend(toleration(one, &path.child("tolerations").index(index)));
    }
    errors
}

fn count(request: &Value, path: &Path) -> ErrorList {
    let count = json::int(request, "count").unwrap_or(0);
    let count_path = path.child("count");
    match json::text(request, "allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            vec![FieldError::invalid(&count_path, count, detail)]
        }
        "ExactCount" if count <= 0 => {
            let detail = "must be greater than zero";
            vec![FieldError::invalid(&count_path, count, detail)]
        }
        "All" | "ExactCount" => ErrorList::new(),
        other => {
            let path = path.child("allocationMode");
            vec![FieldError::not_supported(&path, other, MODES)]
        }
    }
}

fn constraint(constraint: &Value, requests: &Requests<'_>, path: &Path) -> ErrorList {
    let named = json::list(constraint, "requests");
    let mut errors = requests.references(named, &path.child("requests"));
    let fields = ["matchAttribute", "distinctAttribute"];
    let found = fields.iter().find_map(|field| {
        let name = json::some(constraint, field)?.as_str()?;
        Some((field, name))
    });
    match found {
        Some((field, name)) => errors.extend(names::fully_qualified(name, &path.child(field))),
        None => {
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, \
                          but multiple fields are set";
            errors.push(FieldError::required(path, detail));
        }
    }
    errors
}
