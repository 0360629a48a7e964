//! What is wrong with the addresses and address families of a service.

use super::view::Service;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::endpoints::endpoint_ip;
use crate::meta_validate::invalid_each;
use crate::{json, names};
use serde_json::Value;

const STAYS: &str = "may not change once set";
const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

pub fn of(service: &Service<'_>, path: &Path) -> ErrorList {
    if service.kind() == "ExternalName" {
        return ErrorList::new();
    }
    let mut errors = linked(service, path);
    let families = json::list(service.spec, "ipFamilies");
    let families_path = path.child("ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let path = families_path.index(index);
        checks::one_of(&mut errors, family.as_str().unwrap_or(""), FAMILIES, &path);
        if families[..index].contains(family) {
            errors.push(FieldError::duplicate(&path, family.clone()));
        }
    }
    if let Some(policy) = json::some(service.spec, "ipFamilyPolicy") {
        let path = path.child("ipFamilyPolicy");
        checks::one_of(&mut errors, policy.as_str().unwrap_or(""), POLICIES, &path);
    }
    errors.extend(each_address(service, families, &path.child("clusterIPs")));
    errors
}

/// `clusterIP` is the first of `clusterIPs`.
fn linked(service: &Service<'_>, path: &Path) -> ErrorList {
    let path = path.child("clusterIPs");
    let all = service.cluster_ips();
    let value = || Value::from(all);
    match (json::text(service.spec, "clusterIP"), all.first()) {
        ("", None) => ErrorList::new(),
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            vec![FieldError::invalid(&path, value(), detail)]
        }
        (_, None) => vec![FieldError::required(&path, "")],
        (one, Some(first)) if first != one => {
            vec![FieldError::invalid(
                &path,
                value(),
                "first value must match `clusterIP`",
            )]
        }
        _ => ErrorList::new(),
    }
}

fn each_address(service: &Service<'_>, families: &[Value], path: &Path) -> ErrorList {
    let all = service.cluster_ips();
    let value = || Value::from(all);
    let mut errors = ErrorList::new();
    for (index, address) in all.iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        if index == 0 && address == "None" {
            if all.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(path, value(), detail));
            }
            continue;
        }
        invalid_each(&mut errors, &path.index(index), address, names::ip(address));
    }
    let bad = !errors.is_empty();
    if all.len() > 2 {
        errors.push(FieldError::invalid(
            path,
            value(),
            "may only hold up to 2 values",
        ));
    }
    if bad {
        return errors;
    }
    let is_v6 = |address: &Value| address.as_str().is_some_and(|text| text.contains(':'));
    if all.len() == 2 && is_v6(&all[0]) == is_v6(&all[1]) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, value(), detail));
    }
    if service.is_headless() {
        return errors;
    }
    for (index, (address, family)) in all.iter().zip(families).enumerate() {
        let expected = family.as_str().unwrap_or("");
        if FAMILIES.contains(&expected) && is_v6(address) != (expected == "IPv6") {
            let detail =
                format!("expected an {expected} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(
                &path.index(index),
                address.clone(),
                detail,
            ));
        }
    }
    errors
}

pub fn external(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, address) in json::list(spec, "externalIPs").iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        let path = path.index(index);
        let details = names::ip(address);
        if details.is_empty() {
            errors.extend(endpoint_ip(address, &path));
        } else {
            invalid_each(&mut errors, &path, address, details);
        }
    }
    errors
}

/// What was allocated first stays; a second family may come and go.
pub fn update(new: &Service<'_>, old: &Service<'_>, path: &Path) -> ErrorList {
    if new.kind() == "ExternalName" || old.kind() == "ExternalName" {
        return ErrorList::new();
    }
    let mut errors = ErrorList::new();
    if !(new.is_headless() && old.is_headless()) {
        errors.extend(list_update(new, old, path, "clusterIPs", "clusterIP"));
    }
    if !new.is_headless() && !old.is_headless() {
        errors.extend(list_update(new, old, path, "ipFamilies", "ipFamily"));
    }
    errors
}

fn list_update(
    new: &Service<'_>,
    old: &Service<'_>,
    path: &Path,
    field: &str,
    one: &str,
) -> ErrorList {
    let (now, before) = (json::list(new.spec, field), json::list(old.spec, field));
    let list_path = path.child(field);
    let value = || Value::from(now);
    let mut errors = ErrorList::new();
    if now.len() == before.len() {
        let families = field == "ipFamilies";
        for index in (0..now.len()).filter(|index| now[*index] != before[*index]) {
            let path = list_path.index(if families { 0 } else { index });
            errors.push(FieldError::invalid(&path, value(), STAYS));
        }
        return errors;
    }
    let first = list_path.index(0);
    if now.is_empty() {
        let detail = format!("primary {one} can not be unset");
        errors.push(FieldError::invalid(&first, value(), detail));
    } else if !before.is_empty() && now[0] != before[0] {
        errors.push(FieldError::invalid(&first, value(), STAYS));
    }
    let policy = json::get(new.spec, "ipFamilyPolicy");
    if now.len() == 1 && before.len() > 1 && policy != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {one}");
        errors.push(FieldError::invalid(
            &path.child("ipFamilyPolicy"),
            policy.clone(),
            detail,
        ));
    }
    errors
}
