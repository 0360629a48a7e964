//! What is wrong with an endpoint slice.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::endpoints::endpoint_ip;
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::{json, names};
use serde_json::Value;

const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1_000;
const HINTS_MAX: usize = 8;

pub fn slice(object: &Object, old: Option<&Object>) -> ErrorList {
    let mut errors = ErrorList::new();
    let address_type = object.str(&["addressType"]);
    let types = &["FQDN", "IPv4", "IPv6"];
    checks::required_one_of(&mut errors, address_type, types, &Path::root("addressType"));
    errors.extend(ports(object.list(&["ports"])));
    let unchanged = old.is_some_and(|old| old.get(&["endpoints"]) == object.get(&["endpoints"]));
    if !unchanged {
        errors.extend(endpoints(object.list(&["endpoints"]), address_type));
    }
    errors
}

fn ports(ports: &[Value]) -> ErrorList {
    let path = Path::root("ports");
    if ports.len() > PORTS_MAX {
        return vec![FieldError::too_many(&path, ports.len(), PORTS_MAX)];
    }
    let mut errors = ErrorList::new();
    let mut seen = std::collections::BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = json::text(port, "name");
        if !name.is_empty() {
            invalid_each(
                &mut errors,
                &path.child("name"),
                name,
                names::dns_label(name),
            );
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let protocol = json::text(port, "protocol");
        checks::one_of(
            &mut errors,
            protocol,
            &["SCTP", "TCP", "UDP"],
            &path.child("protocol"),
        );
        if let Some(protocol) = json::some(port, "appProtocol").and_then(Value::as_str) {
            let path = path.child("appProtocol");
            invalid_each(
                &mut errors,
                &path,
                protocol,
                names::qualified_name(protocol),
            );
        }
    }
    errors
}

fn endpoints(endpoints: &[Value], address_type: &str) -> ErrorList {
    let path = Path::root("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![FieldError::too_many(&path, endpoints.len(), ENDPOINTS_MAX)];
    }
    let mut errors = ErrorList::new();
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        errors.extend(addresses(endpoint, address_type, &path.child("addresses")));
        if let Some(node) = json::some(endpoint, "nodeName").and_then(Value::as_str) {
            invalid_each(
                &mut errors,
                &path.child("nodeName"),
                node,
                names::dns_subdomain(node),
            );
        }
        if let Some(host) = json::some(endpoint, "hostname").and_then(Value::as_str) {
            invalid_each(
                &mut errors,
                &path.child("hostname"),
                host,
                names::dns_label(host),
            );
        }
        errors.extend(hints(json::get(endpoint, "hints"), &path.child("hints")));
    }
    errors
}

fn addresses(endpoint: &Value, address_type: &str, path: &Path) -> ErrorList {
    let all = json::list(endpoint, "addresses");
    let mut errors = ErrorList::new();
    if all.is_empty() {
        errors.push(FieldError::required(
            path,
            "must contain at least 1 address",
        ));
    } else if all.len() > ADDRESSES_MAX {
        errors.push(FieldError::too_many(path, all.len(), ADDRESSES_MAX));
    }
    for (index, address) in all.iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        let at = path.index(index);
        match address_type {
            "IPv4" | "IPv6" => {
                let details = names::ip(address);
                if !details.is_empty() {
                    invalid_each(&mut errors, &at, address, details);
                    continue;
                }
                if address.contains(':') != (address_type == "IPv6") {
                    let detail = format!("must be an {address_type} address");
                    errors.push(FieldError::invalid(path, address, detail));
                }
                errors.extend(endpoint_ip(address, &at));
            }
            "FQDN" => errors.extend(domain(address, &at)),
            _ => {}
        }
    }
    errors
}

/// A domain of at least two labels, perhaps with a dot at its end.
fn domain(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let invalid = |value: &str, detail: String| vec![FieldError::invalid(path, value, detail)];
    let details = names::dns_subdomain(name);
    if !details.is_empty() {
        return invalid(name, details.join(","));
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return invalid(name, detail.to_owned());
    }
    let labels = name
        .split('.')
        .map(|label| (label, names::dns_label(label)));
    match labels.into_iter().find(|(_, details)| !details.is_empty()) {
        Some((label, details)) => invalid(label, details.join(",")),
        None => ErrorList::new(),
    }
}

fn hints(hints: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["forZones", "forNodes"] {
        let all = json::list(hints, field);
        let path = path.child(field);
        if all.len() > HINTS_MAX {
            errors.push(FieldError::too_many(&path, all.len(), HINTS_MAX));
            return errors;
        }
        for (index, hint) in all.iter().enumerate() {
            let path = path.index(index).child("name");
            let name = json::text(hint, "name");
            if all[..index]
                .iter()
                .any(|other| json::text(other, "name") == name)
            {
                errors.push(FieldError::duplicate(&path, name));
            }
            let details = match field {
                "forZones" => names::label_value(name),
                _ => names::dns_subdomain(name),
            };
            invalid_each(&mut errors, &path, name, details);
        }
    }
    errors
}
