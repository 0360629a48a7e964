//! What is wrong with a network policy.

use super::DIRECTIONS;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, label_selector, names};
use serde_json::Value;
use std::net::IpAddr;

pub fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    const TYPES_MAX: usize = 2;
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let known = old.map(ranges).unwrap_or_default();
    let mut errors =
        label_selector::validate(json::get(spec, "podSelector"), &path.child("podSelector"));
    for (direction, other_end) in DIRECTIONS {
        let path = path.child(direction);
        for (index, rule) in json::list(spec, direction).iter().enumerate() {
            let path = path.index(index);
            let ports = json::list(rule, "ports").iter().enumerate();
            for (index, one) in ports {
                errors.extend(port(one, &path.child("ports").index(index)));
            }
            let peers = json::list(rule, other_end).iter().enumerate();
            for (index, one) in peers {
                errors.extend(peer(one, &known, &path.child(other_end).index(index)));
            }
        }
    }
    let types = json::list(spec, "policyTypes");
    let types_path = path.child("policyTypes");
    if types.len() > TYPES_MAX {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&types_path, Value::from(types), detail));
        return errors;
    }
    for (index, one) in types.iter().enumerate() {
        let one = one.as_str().unwrap_or("");
        let path = types_path.index(index);
        checks::one_of(&mut errors, one, &["Ingress", "Egress"], &path);
    }
    errors
}

/// Ranges that a policy has: they stay good, wherever an update puts them.
fn ranges(object: &Object) -> Vec<&Value> {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let blocks = DIRECTIONS.iter().flat_map(|(direction, other_end)| {
        json::list(spec, direction)
            .iter()
            .flat_map(|rule| json::list(rule, other_end))
            .filter_map(|peer| json::some(peer, "ipBlock"))
    });
    blocks
        .flat_map(|block| {
            [json::get(block, "cidr")]
                .into_iter()
                .chain(json::list(block, "except"))
        })
        .collect()
}

fn port(port: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(protocol) = json::some(port, "protocol").and_then(Value::as_str) {
        let supported = &["TCP", "UDP", "SCTP"];
        checks::one_of(&mut errors, protocol, supported, &path.child("protocol"));
    }
    let end = json::int(port, "endPort");
    let end_path = path.child("endPort");
    let number_path = path.child("port");
    let numbers = |errors: &mut ErrorList, number: i64, path: &Path| {
        let details = names::port_number(number).into_iter();
        errors.extend(details.map(|d| FieldError::invalid(path, number, d)));
    };
    match json::get(port, "port") {
        Value::Null => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is not specified";
                errors.push(FieldError::invalid(&end_path, end, detail));
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(&end_path, end, detail));
            }
            checks::each(&mut errors, &number_path, name, names::port_name(name));
        }
        number => {
            let number = number.as_i64().unwrap_or(0);
            numbers(&mut errors, number, &number_path);
            if let Some(end) = end {
                if end < number {
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end_path, number, detail));
                }
                numbers(&mut errors, end, &end_path);
            }
        }
    }
    errors
}

fn peer(peer: &Value, known: &[&Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let selectors = ["podSelector", "namespaceSelector"];
    let mut peers = 0;
    for name in selectors {
        if let Some(selector) = json::some(peer, name) {
            peers += 1;
            errors.extend(label_selector::validate(selector, &path.child(name)));
        }
    }
    let block = json::some(peer, "ipBlock");
    if let Some(block) = block {
        peers += 1;
        errors.extend(ip_block(block, known, &path.child("ipBlock")));
    }
    if peers == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 1 && block.is_some() {
        let detail = "may not specify both ipBlock and another peer";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn ip_block(block: &Value, known: &[&Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let cidr = json::get(block, "cidr");
    let cidr_path = path.child("cidr");
    if json::is_empty(cidr) {
        return vec![FieldError::required(&cidr_path, "")];
    }
    let Some(outer) = check_range(&mut errors, cidr, known, &cidr_path) else {
        return errors;
    };
    for (index, except) in json::list(block, "except").iter().enumerate() {
        let path = path.child("except").index(index);
        let inner = check_range(&mut errors, except, known, &path);
        if inner.is_some_and(|inner| !is_inside(inner, outer)) {
            let detail = "must be a strict subset of `cidr`";
            errors.push(FieldError::invalid(&path, except.clone(), detail));
        }
    }
    errors
}

fn check_range(
    errors: &mut ErrorList,
    value: &Value,
    known: &[&Value],
    path: &Path,
) -> Option<(IpAddr, u32)> {
    let text = value.as_str().unwrap_or("");
    if !known.contains(&value) {
        checks::each(errors, path, text, names::cidr(text));
    }
    range(text)
}

fn range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

/// True for a range that is smaller than the other, and within it.
fn is_inside(inner: (IpAddr, u32), outer: (IpAddr, u32)) -> bool {
    let first = |address: u128, width: u32, bits: u32| {
        address.checked_shr(width.saturating_sub(bits)).unwrap_or(0)
    };
    let begins_alike = match (inner.0, outer.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            first(u32::from(a).into(), 32, outer.1) == first(u32::from(b).into(), 32, outer.1)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            first(a.into(), 128, outer.1) == first(b.into(), 128, outer.1)
        }
        _ => false,
    };
    begins_alike && outer.1 < inner.1
}
