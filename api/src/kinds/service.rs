//! Services: stable addresses of pods. Addresses and node ports are allocated by the API server;
//! here is what they may look like, and what an update keeps of them.

mod columns;
mod strategy;
mod validate;
mod validate_addresses;
pub mod view;
mod warnings;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, NameRule, Part, Resource, Rules, Subresource, SubresourceKind};
use serde_json::{Value, json};
use view::Service as View;

/// How long a client keeps to its pod under session affinity.
const AFFINITY_SECONDS: i64 = 10_800;

pub const ROW: Resource = Resource {
    short_names: &["svc"],
    categories: &["all"],
    subresources: &[
        Subresource {
            name: "proxy",
            kind: SubresourceKind::Connect,
            body: Some(("", "v1", "ServiceProxyOptions")),
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        row::STATUS,
    ],
    selectable_fields: &["spec.clusterIP", "spec.type"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "Service",
            plural: "services",
            singular: "service",
            schema: "io.k8s.api.core.v1.Service",
        },
        &Service,
    )
};

#[derive(Debug)]
struct Service;

impl Rules for Service {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        object.get_mut(&["spec"]).map(default_spec);
        if object.str(&["spec", "type"]) == "LoadBalancer"
            && let Some(balancer) = object.get_mut(&["status", "loadBalancer"])
        {
            for ingress in json::list_mut(balancer, "ingress") {
                if !json::text(ingress, "ip").is_empty() {
                    json::default(ingress, "ipMode", "VIP");
                }
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "loadBalancer": {} }));
        strategy::plural_from_singular(object);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        strategy::prepare_update(new, old, part);
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::service(&View::of(object))
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(&View::of(new)),
            Part::Main | Part::Other(_) => validate::update(&View::of(new), &View::of(old)),
        }
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        warnings::of(object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(object, now)
    }
}

/// What is wrong with the addresses and families that a Service asks for.
pub fn address_errors(service: &View<'_>) -> ErrorList {
    validate_addresses::of(service, &crate::field::Path::root("spec"))
}

fn default_spec(spec: &mut Value) {
    json::default_text(spec, "sessionAffinity", "None");
    match json::text(spec, "sessionAffinity") {
        "None" => {
            spec.as_object_mut()
                .map(|map| map.remove("sessionAffinityConfig"));
        }
        "ClientIP" => {
            let path = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
            if json::at(spec, &path).is_null() {
                spec["sessionAffinityConfig"] =
                    json!({ "clientIP": { "timeoutSeconds": AFFINITY_SECONDS } });
            }
        }
        _ => {}
    }
    json::default_text(spec, "type", "ClusterIP");
    for port in json::list_mut(spec, "ports") {
        json::default_text(port, "protocol", "TCP");
        let unset = match json::get(port, "targetPort") {
            Value::Null => true,
            Value::String(name) => name.is_empty(),
            number => number.as_i64() == Some(0),
        };
        if unset && port.is_object() {
            port["targetPort"] = json::int(port, "port").unwrap_or(0).into();
        }
    }
    if View::of_spec(spec).is_externally_accessible() {
        json::default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(
        json::text(spec, "type"),
        "NodePort" | "LoadBalancer" | "ClusterIP"
    ) {
        json::default(spec, "internalTrafficPolicy", "Cluster");
    }
    if json::text(spec, "type") == "LoadBalancer" {
        json::default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

#[cfg(test)]
mod tests;
