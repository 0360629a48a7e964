//! Resources that are asked for: names, quantities, and requests against limits.

use super::os;
use crate::field::{ErrorList, FieldError, Path};
use crate::meta_validate::invalid_each;
use crate::pod_spec::resources::{asked, is_extended, is_native, together};
use crate::quantity::Quantity;
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

/// Each quantity of a resource list is well-formed, not negative, and whole where it counts
/// things.
pub fn quantities(list: &Value, path: impl Fn(&str) -> Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in list.as_object().into_iter().flatten() {
        errors.extend(quantity(name, value, &path(name)));
    }
    errors
}

fn quantity(name: &str, value: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match Quantity::from_value(value) {
        Err(error) => errors.push(FieldError::invalid(path, value.clone(), error.to_string())),
        Ok(quantity) => {
            if quantity.is_negative() {
                let detail = names::MUST_NOT_BE_NEGATIVE;
                errors.push(FieldError::invalid(path, value.clone(), detail));
            }
            if counts_things(name) && !quantity.is_whole() {
                errors.push(FieldError::invalid(
                    path,
                    value.clone(),
                    "must be an integer",
                ));
            }
            if let Some(size) = name.strip_prefix("hugepages-")
                && !is_multiple(quantity, size)
            {
                let detail = format!("{quantity} is not positive integer multiple of {name}");
                errors.push(FieldError::invalid(path, quantity.to_string(), detail));
            }
        }
    }
    errors
}

/// Huge pages come in whole pages.
fn is_multiple(quantity: Quantity, page_size: &str) -> bool {
    match Quantity::parse(page_size) {
        Ok(size) if size > Quantity::ZERO && size.is_whole() => {
            quantity.value() % size.value() == 0
        }
        _ => false,
    }
}

/// True for a resource that comes in whole pieces.
fn counts_things(name: &str) -> bool {
    const COUNTED: &[&str] = &[
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    ];
    COUNTED.contains(&name) || is_extended(name)
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Only what can be taken back may be promised twice.
pub fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// The name of a resource: one that Kubernetes knows, or one with a domain.
pub fn standard_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invalid_each(&mut errors, path, name, names::qualified_name(name));
    let known = is_quota_resource(name) || name == "storage" || is_huge_page(name);
    if errors.is_empty() && !name.contains('/') && !known {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// The name of a resource that a container can ask for.
pub fn container_resource_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = standard_name(name, path);
    let plain = !name.contains('/');
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name);
    if plain && !standard {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, detail));
    } else if !plain && !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// Standard names that quotas know, containers or not.
pub fn is_quota_resource(name: &str) -> bool {
    let quota = name
        .strip_prefix("requests.")
        .or(name.strip_prefix("limits."));
    match (name, quota) {
        ("cpu" | "memory" | "ephemeral-storage" | "requests.storage", _)
        | (_, Some("cpu" | "memory" | "ephemeral-storage")) => true,
        (_, Some(rest)) if name.starts_with("requests.") && is_huge_page(rest) => true,
        _ => !name.contains('/') && counts_things(name) || is_huge_page(name),
    }
}

/// A quantity of the named resource: not negative, and whole where it counts things.
pub fn amount(name: &str, value: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let quantity = Quantity::from_value(value).unwrap_or(Quantity::ZERO);
    if quantity.is_negative() {
        let detail = names::MUST_NOT_BE_NEGATIVE;
        errors.push(FieldError::invalid(path, quantity.to_string(), detail));
    }
    if counts_things(name) && !quantity.is_whole() {
        let detail = "must be an integer";
        errors.push(FieldError::invalid(path, quantity.to_string(), detail));
    }
    errors
}

/// Resources of a container; `claims` are the pod's.
pub fn of_container(resources: &Value, claims: &BTreeSet<String>, path: &Path) -> ErrorList {
    let mut errors = requirements(resources, path, container_resource_name);
    errors.extend(claim_names(resources, claims, &path.child("claims")));
    errors
}

fn requirements(
    resources: &Value,
    path: &Path,
    check_name: fn(&str, &Path) -> ErrorList,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let limits = json::get(resources, "limits");
    for (name, value) in json::entries(resources, "limits") {
        let path = limits_path.key(name);
        errors.extend(check_name(name, &path));
        errors.extend(quantity(name, value, &path));
    }
    for (name, value) in json::entries(resources, "requests") {
        let path = requests_path.key(name);
        errors.extend(check_name(name, &path));
        errors.extend(quantity(name, value, &path));
        errors.extend(against_limit(
            name,
            value,
            limits.get(name),
            &requests_path,
            &limits_path,
        ));
    }
    let names = ["limits", "requests"].map(|list| json::entries(resources, list));
    let names: Vec<&str> = names.into_iter().flatten().map(|(name, _)| name).collect();
    let computes = names.iter().any(|name| matches!(*name, "cpu" | "memory"));
    if !computes && names.iter().any(|name| is_huge_page(name)) {
        errors.push(FieldError::forbidden(
            path,
            "HugePages require cpu or memory",
        ));
    }
    errors
}

fn against_limit(
    name: &str,
    value: &Value,
    limit: Option<&Value>,
    requests_path: &Path,
    limits_path: &Path,
) -> ErrorList {
    let Some(limit) = limit else {
        if may_overcommit(name) {
            return ErrorList::new();
        }
        let detail = "Limit must be set for non overcommitable resources";
        return vec![FieldError::required(limits_path, detail)];
    };
    let (Ok(asked), Ok(limit)) = (Quantity::from_value(value), Quantity::from_value(limit)) else {
        return ErrorList::new();
    };
    let detail = if asked != limit && !may_overcommit(name) {
        format!("must be equal to {name} limit of {limit}")
    } else if asked > limit {
        format!("must be less than or equal to {name} limit of {limit}")
    } else {
        return ErrorList::new();
    };
    vec![FieldError::invalid(
        requests_path,
        asked.to_string(),
        detail,
    )]
}

fn claim_names(resources: &Value, claims: &BTreeSet<String>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, claim) in json::list(resources, "claims").iter().enumerate() {
        let path = path.index(index);
        let [name, request] = ["name", "request"].map(|field| json::text(claim, field));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if !request.is_empty() {
            invalid_each(
                &mut errors,
                &path.child("request"),
                request,
                names::dns_label(request),
            );
        }
        let whole = seen.contains(&(name, ""));
        let part = request.is_empty() && seen.iter().any(|(other, _)| *other == name);
        if whole || part {
            errors.push(FieldError::duplicate(&path, name));
        } else if !seen.insert((name, request)) {
            errors.push(FieldError::duplicate(&path, format!("{name}/{request}")));
        }
        if !claims.contains(name) {
            let mut error = FieldError::not_found(&path, name);
            let known = claims.iter().map(String::as_str);
            let known: Vec<&str> = known.filter(|name| !name.is_empty()).collect();
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            error.detail += &match known.as_slice() {
                [] => " which is empty".to_owned(),
                known => format!(": {}", known.join(", ")),
            };
            errors.push(error);
        }
    }
    errors
}

/// Resources of the pod as a whole: at least what its containers ask, and at most one of them.
pub fn pod_level(spec: &Value, path: &Path) -> ErrorList {
    let Some(resources) = json::some(spec, "resources") else {
        return ErrorList::new();
    };
    if os::name(spec) == "windows" {
        let detail = "may not be set for a windows pod";
        return vec![FieldError::forbidden(path, detail)];
    }
    let mut errors = ErrorList::new();
    if json::has(resources, "claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), detail));
    }
    errors.extend(requirements(resources, path, pod_resource_name));
    let of_containers = together(spec, |container, _| asked(container, "requests"));
    for (name, value) in json::entries(resources, "requests") {
        let Ok(asked) = Quantity::from_value(value) else {
            continue;
        };
        let together = of_containers.get(name).unwrap_or(Quantity::ZERO);
        if together > asked && !together.is_zero() {
            let detail = format!(
                "must be greater than or equal to aggregate container requests of {together}"
            );
            let path = path.child("requests").key(name);
            errors.push(FieldError::invalid(&path, asked.to_string(), detail));
        }
    }
    for (index, container) in json::list(spec, "containers").iter().enumerate() {
        for (name, value) in json::entries(json::get(container, "resources"), "limits") {
            let most = json::at(resources, &["limits", name]);
            let (Ok(limit), Ok(most)) = (Quantity::from_value(value), Quantity::from_value(most))
            else {
                continue;
            };
            if json::at(resources, &["limits", name]).is_null() || limit <= most {
                continue;
            }
            let detail = format!("must be less than or equal to pod limits of {most}");
            let path = path
                .child("containers")
                .index(index)
                .key(name)
                .child("limits");
            errors.push(FieldError::invalid(&path, limit.to_string(), detail));
        }
    }
    errors
}

fn pod_resource_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(standard_name(name, path));
    let known = matches!(name, "cpu" | "memory") || is_huge_page(name);
    if errors.is_empty() && !known {
        errors.push(FieldError::not_supported(
            path,
            name,
            &["cpu", "hugepages-", "memory"],
        ));
    }
    errors
}
