//! What is wrong with an ingress.

use super::CLASS_ANNOTATION;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names};
use serde_json::Value;
use std::net::IpAddr;

/// What an update lets pass because the old object had it.
#[derive(Clone, Copy, Debug, Default)]
struct Tolerance {
    secret_names: bool,
    wildcard_rules: bool,
}

pub fn create(object: &Object) -> ErrorList {
    let mut errors = spec(object, Tolerance::default());
    let class = object.get(&["spec", "ingressClassName"]);
    if let (Some(annotated), Some(class)) = (
        object.annotation(CLASS_ANNOTATION),
        class.and_then(Value::as_str),
    ) && annotated != class
    {
        let path = Path::root("annotations").child(CLASS_ANNOTATION);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&path, annotated, detail));
    }
    errors
}

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let secret_names = old.list(&["spec", "tls"]).iter().any(|tls| {
        let name = json::text(tls, "secretName");
        !name.is_empty() && !names::dns_subdomain(name).is_empty()
    });
    let wildcard_rules = old.list(&["spec", "rules"]).iter().any(|rule| {
        json::text(rule, "host").contains('*') && !rule_value(rule, &Path::default()).is_empty()
    });
    spec(
        new,
        Tolerance {
            secret_names,
            wildcard_rules,
        },
    )
}

fn spec(object: &Object, tolerance: Tolerance) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let rules = json::list(spec, "rules");
    let fallback = json::some(spec, "defaultBackend");
    let mut errors = ErrorList::new();
    if rules.is_empty() && fallback.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let shown = json::get(spec, "rules").clone();
        errors.push(FieldError::invalid(&path, shown, detail));
    }
    if let Some(fallback) = fallback {
        errors.extend(backend(fallback, &path.child("defaultBackend")));
    }
    for (index, one) in rules.iter().enumerate() {
        errors.extend(rule(one, tolerance, &path.child("rules").index(index)));
    }
    for (index, tls) in json::list(spec, "tls").iter().enumerate() {
        errors.extend(tls_hosts(tls, tolerance, &path.child("tls").index(index)));
    }
    if let Some(class) = json::some(spec, "ingressClassName").and_then(Value::as_str) {
        let path = path.child("ingressClassName");
        checks::each(&mut errors, &path, class, names::dns_subdomain(class));
    }
    errors
}

fn host_faults(host: &str) -> Vec<String> {
    if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::dns_subdomain(host)
    }
}

fn tls_hosts(tls: &Value, tolerance: Tolerance, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, host) in json::list(tls, "hosts").iter().enumerate() {
        let host = host.as_str().unwrap_or("");
        let path = path.child("hosts").index(index);
        checks::each(&mut errors, &path, host, host_faults(host));
    }
    let secret = json::text(tls, "secretName");
    if !secret.is_empty() && !tolerance.secret_names {
        let path = path.child("secretName");
        checks::each(&mut errors, &path, secret, names::dns_subdomain(secret));
    }
    errors
}

fn no_address(errors: &mut ErrorList, host: &str, path: &Path) {
    if host.parse::<IpAddr>().is_ok() {
        let detail = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(path, host, detail));
    }
}

fn rule(rule: &Value, tolerance: Tolerance, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let host = json::text(rule, "host");
    if !host.is_empty() {
        let path = path.child("host");
        no_address(&mut errors, host, &path);
        checks::each(&mut errors, &path, host, host_faults(host));
    }
    if !(host.contains('*') && tolerance.wildcard_rules) {
        errors.extend(rule_value(rule, path));
    }
    errors
}

fn rule_value(rule: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(http) = json::some(rule, "http") else {
        return errors;
    };
    let path = path.child("http").child("paths");
    let paths = json::list(http, "paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, one) in paths.iter().enumerate() {
        errors.extend(http_path(one, &path.index(index)));
    }
    errors
}

fn http_path(http: &Value, path: &Path) -> ErrorList {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    const SUFFIXES: [&str; 2] = ["/..", "/."];
    let mut errors = ErrorList::new();
    let type_path = path.child("pathType");
    let Some(kind) = json::some(http, "pathType") else {
        errors.push(FieldError::required(
            &type_path,
            "pathType must be specified",
        ));
        return errors;
    };
    let text = json::text(http, "path");
    let text_path = path.child("path");
    let mut invalid = |is_wrong: bool, detail: String| {
        if is_wrong {
            errors.push(FieldError::invalid(&text_path, text, detail));
        }
    };
    let is_relative = !text.starts_with('/');
    let absolute = "must be an absolute path".to_owned();
    match kind.as_str().unwrap_or("") {
        "Exact" | "Prefix" => {
            invalid(is_relative, absolute);
            for sequence in SEQUENCES {
                let detail = format!("must not contain '{sequence}'");
                invalid(text.contains(sequence), detail);
            }
            for suffix in SUFFIXES {
                let detail = format!("cannot end with '{suffix}'");
                invalid(text.ends_with(suffix), detail);
            }
        }
        "ImplementationSpecific" => invalid(!text.is_empty() && is_relative, absolute),
        other => {
            let supported = &["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(&type_path, other, supported));
        }
    }
    errors.extend(backend(json::get(http, "backend"), &path.child("backend")));
    errors
}

fn backend(backend: &Value, path: &Path) -> ErrorList {
    let resource = json::some(backend, "resource");
    let service = json::some(backend, "service");
    let wrong = |detail: &str| vec![FieldError::invalid(path, "", detail)];
    match (resource, service) {
        (Some(_), Some(_)) => wrong("cannot set both resource and service backends"),
        (Some(resource), None) => typed_reference(resource, &path.child("resource")),
        (None, Some(service)) => service_backend(service, path),
        (None, None) => wrong("resource or service backend is required"),
    }
}

fn service_backend(service: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let service_path = path.child("service");
    let name = json::text(service, "name");
    let name_path = service_path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        checks::each(&mut errors, &name_path, name, names::dns_label(name));
    }
    let port = json::get(service, "port");
    let port_path = service_path.child("port");
    let (name, number) = (
        json::text(port, "name"),
        json::int(port, "number").unwrap_or(0),
    );
    match (name, number) {
        ("", 0) => {
            let detail = "port name or number is required";
            errors.push(FieldError::required(path, detail));
        }
        ("", number) => {
            let path = port_path.child("number");
            let details = names::port_number(number).into_iter();
            errors.extend(details.map(|d| FieldError::invalid(&path, number, d)));
        }
        (name, 0) => {
            let path = port_path.child("name");
            checks::each(&mut errors, &path, name, names::port_name(name));
        }
        _ => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, "", detail));
        }
    }
    errors
}

/// A reference to an object of any kind beside this one.
fn typed_reference(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(group) = json::some(reference, "apiGroup").and_then(Value::as_str) {
        let path = path.child("apiGroup");
        checks::each(&mut errors, &path, group, names::dns_subdomain(group));
    }
    checks::required_segment(&mut errors, reference, "kind", path);
    checks::required_segment(&mut errors, reference, "name", path);
    errors
}

/// Addresses that were there stay good.
pub fn status(new: &Object, old: &Object) -> ErrorList {
    let list: &[&str] = &["status", "loadBalancer", "ingress"];
    let known: Vec<&str> = old
        .list(list)
        .iter()
        .map(|one| json::text(one, "ip"))
        .collect();
    let path = Path::root("status").child("loadBalancer").child("ingress");
    let mut errors = ErrorList::new();
    for (index, one) in new.list(list).iter().enumerate() {
        let path = path.index(index);
        let (ip, host) = (json::text(one, "ip"), json::text(one, "hostname"));
        if !ip.is_empty() && !known.contains(&ip) {
            checks::each(&mut errors, &path.child("ip"), ip, names::ip(ip));
        }
        if !host.is_empty() {
            let path = path.child("hostname");
            checks::each(&mut errors, &path, host, names::dns_subdomain(host));
            no_address(&mut errors, host, &path);
        }
    }
    errors
}
