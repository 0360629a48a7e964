//! Endpoints: the addresses behind a service, in the form of old.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::Value;
use std::net::IpAddr;

/// Addresses shown in a cell; the rest is counted.
pub const SHOWN_MAX: usize = 3;

pub const ROW: Resource = Resource {
    short_names: &["ep"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "Endpoints",
            plural: "endpoints",
            singular: "endpoints",
            schema: "io.k8s.api.core.v1.Endpoints",
        },
        &Endpoints,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Endpoints",
        "string",
        "Addresses and ports behind the service.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct Endpoints;

impl Rules for Endpoints {
    fn deprecation(&self) -> Option<&'static str> {
        Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    }

    fn default(&self, object: &mut Object) {
        let subsets = object.get_mut(&["subsets"]).and_then(Value::as_array_mut);
        for subset in subsets.into_iter().flatten() {
            for port in json::list_mut(subset, "ports") {
                json::default_text(port, "protocol", "TCP");
            }
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        subsets(object.list(&["subsets"]))
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        if new.get(&["subsets"]) == old.get(&["subsets"]) {
            return ErrorList::new();
        }
        self.validate_create(new)
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let shown = addresses(object.list(&["subsets"]));
        vec![
            object.name().into(),
            shown.into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, _object: &Object) -> Vec<String> {
        let text = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        vec![text.to_owned()]
    }
}

fn addresses(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = json::list(subset, "addresses").iter();
        let ips: Vec<&str> = ips.map(|address| json::text(address, "ip")).collect();
        let ports = json::list(subset, "ports");
        if ports.is_empty() {
            all.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in ports {
            let port = json::int(port, "port").unwrap_or(0);
            all.extend(ips.iter().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    with_more(&all)
}

/// The first few, and how many more there are.
pub fn with_more(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn subsets(subsets: &[Value]) -> ErrorList {
    let path = Path::root("subsets");
    let mut errors = ErrorList::new();
    for (index, subset) in subsets.iter().enumerate() {
        let path = path.index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| json::list(subset, list).is_empty()) {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&path, detail));
        }
        for list in lists {
            for (index, address) in json::list(subset, list).iter().enumerate() {
                errors.extend(endpoint_address(address, &path.child(list).index(index)));
            }
        }
        let ports = json::list(subset, "ports");
        for (index, port) in ports.iter().enumerate() {
            errors.extend(endpoint_port(
                port,
                ports.len() > 1,
                &path.child("ports").index(index),
            ));
        }
    }
    errors
}

fn endpoint_address(address: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let ip = json::text(address, "ip");
    let hostname = json::text(address, "hostname");
    invalid_each(&mut errors, &path.child("ip"), ip, names::ip(ip));
    if !hostname.is_empty() {
        let path = path.child("hostname");
        invalid_each(&mut errors, &path, hostname, names::dns_label(hostname));
    }
    if let Some(node) = json::some(address, "nodeName").and_then(Value::as_str) {
        invalid_each(
            &mut errors,
            &path.child("nodeName"),
            node,
            names::dns_subdomain(node),
        );
    }
    errors.extend(endpoint_ip(ip, &path.child("ip")));
    errors
}

/// An address that something else can reach.
pub fn endpoint_ip(text: &str, path: &Path) -> ErrorList {
    let invalid = |detail: String| vec![FieldError::invalid(path, text, detail)];
    let Ok(ip) = text.parse::<IpAddr>() else {
        return invalid("must be a valid IP address".to_owned());
    };
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (
            ip.is_unicast_link_local(),
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if ip.is_unspecified() {
        invalid(format!("may not be unspecified ({text})"))
    } else if ip.is_loopback() {
        invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned())
    } else if link_local {
        invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned())
    } else if link_local_multicast {
        invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned())
    } else {
        ErrorList::new()
    }
}

fn endpoint_port(port: &Value, needs_name: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = json::text(port, "name");
    if needs_name && name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        invalid_each(
            &mut errors,
            &path.child("name"),
            name,
            names::dns_label(name),
        );
    }
    let number = json::int(port, "port").unwrap_or(0);
    let details = names::port_number(number);
    errors.extend(
        details
            .into_iter()
            .map(|d| FieldError::invalid(&path.child("port"), number, d)),
    );
    let protocol = json::text(port, "protocol");
    let protocols = &["SCTP", "TCP", "UDP"];
    checks::required_one_of(&mut errors, protocol, protocols, &path.child("protocol"));
    if let Some(protocol) = json::some(port, "appProtocol").and_then(Value::as_str) {
        let path = path.child("appProtocol");
        invalid_each(
            &mut errors,
            &path,
            protocol,
            names::qualified_name(protocol),
        );
    }
    errors
}

#[cfg(test)]
mod tests;
