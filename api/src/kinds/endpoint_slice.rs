//! Endpoint slices: the addresses behind a service.

mod validate;

use crate::field::ErrorList;
use crate::kinds::checks;
use crate::kinds::endpoints::with_more;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{field::Path, json, print};
use serde_json::{Value, json};

pub const ROW: Resource = row::namespaced(
    "discovery.k8s.io",
    "v1",
    Names {
        kind: "EndpointSlice",
        plural: "endpointslices",
        singular: "endpointslice",
        schema: "io.k8s.api.discovery.v1.EndpointSlice",
    },
    &EndpointSlice,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column("AddressType", "string", "IPv4, IPv6 or FQDN."),
    column("Ports", "string", "The ports of every endpoint."),
    column("Endpoints", "string", "The addresses of the endpoints."),
    row::AGE,
];

#[derive(Debug)]
struct EndpointSlice;

impl Rules for EndpointSlice {
    fn default(&self, object: &mut Object) {
        for list in ["endpoints", "ports"] {
            json::default_in(object.root_mut(), list, Value::Null);
        }
        let ports = object.get_mut(&["ports"]).and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            json::default(port, "name", "");
            json::default(port, "protocol", "TCP");
        }
        let endpoints = object.get_mut(&["endpoints"]).and_then(Value::as_array_mut);
        for endpoint in endpoints.into_iter().flatten() {
            json::default(endpoint, "conditions", json!({}));
        }
    }

    /// The old topology map is not taken in by this version.
    fn prepare_create(&self, object: &mut Object) {
        let endpoints = object.get_mut(&["endpoints"]).and_then(Value::as_array_mut);
        for endpoint in endpoints.into_iter().flatten() {
            endpoint
                .as_object_mut()
                .map(|map| map.remove("deprecatedTopology"));
        }
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _part: Part<'_>) {
        self.prepare_create(new);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    /// Everything but metadata counts, and labels count too.
    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        ["addressType", "endpoints", "ports"]
            .iter()
            .any(|field| new.get(&[field]) != old.get(&[field]))
            || new.get(&["metadata", "labels"]) != old.get(&["metadata", "labels"])
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::slice(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = validate::slice(new, Some(old));
        let (new, old) = (new.to_value(), old.to_value());
        checks::immutable(&mut errors, &new, &old, "addressType", &Path::default());
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let ports: Vec<String> = object.list(&["ports"]).iter().map(port).collect();
        let addresses: Vec<String> = object
            .list(&["endpoints"])
            .iter()
            .flat_map(|endpoint| json::list(endpoint, "addresses"))
            .filter_map(|address| Some(address.as_str()?.to_owned()))
            .collect();
        vec![
            object.name().into(),
            object.str(&["addressType"]).into(),
            or_unset(&ports).into(),
            or_unset(&addresses).into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        if object.str(&["addressType"]) == "FQDN" {
            vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()]
        } else {
            Vec::new()
        }
    }
}

fn or_unset(all: &[String]) -> String {
    if all.is_empty() {
        "<unset>".to_owned()
    } else {
        with_more(all)
    }
}

fn port(port: &Value) -> String {
    match json::int(port, "port") {
        Some(number) => number.to_string(),
        None => json::some(port, "name")
            .and_then(Value::as_str)
            .unwrap_or("*")
            .to_owned(),
    }
}

#[cfg(test)]
mod tests;
