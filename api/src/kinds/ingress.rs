//! Ingresses: HTTP routes from outside to services.

mod validate;

use crate::field::ErrorList;
use crate::kinds::prepare;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["ing"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "Ingress",
            plural: "ingresses",
            singular: "ingress",
            schema: "io.k8s.api.networking.v1.Ingress",
        },
        &Ingress,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Class",
        "string",
        "The name of the IngressClass resource that should be used for additional configuration",
    ),
    column(
        "Hosts",
        "string",
        "Hosts that incoming requests are matched against before the ingress rule",
    ),
    column(
        "Address",
        "string",
        "Address is a list containing ingress points for the load-balancer",
    ),
    column("Ports", "string", "Ports of TLS configurations that open"),
    row::AGE,
];

/// Names the class where `spec.ingressClassName` does not.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const HOSTS_SHOWN_MAX: usize = 3;

#[derive(Debug)]
struct Ingress;

impl Rules for Ingress {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = object.get_mut(&["spec"]) {
            default_backends(spec);
        }
        json::default_in(object.root_mut(), "status", json!({}));
        if let Some(status) = object.get_mut(&["status"]) {
            json::default(status, "loadBalancer", json!({}));
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "loadBalancer": {} }));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::create(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new, old),
            Part::Main | Part::Other(_) => validate::update(new, old),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let class = object.get(&["spec", "ingressClassName"]);
        let ports = if object.list(&["spec", "tls"]).is_empty() {
            "80"
        } else {
            "80, 443"
        };
        vec![
            object.name().into(),
            class.and_then(Value::as_str).unwrap_or("<none>").into(),
            hosts(object).into(),
            addresses(object).into(),
            ports.into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let has_class = object
            .get(&["spec", "ingressClassName"])
            .is_some_and(|class| !class.is_null());
        if has_class || object.annotation(CLASS_ANNOTATION).is_none() {
            return Vec::new();
        }
        vec![format!(
            "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' \
             instead"
        )]
    }

    /// Who has the annotation was told when it came.
    fn warnings_on_update(&self, _new: &Object, _old: &Object) -> Vec<String> {
        Vec::new()
    }
}

/// A reference is shown with its group, even where it has none.
fn default_backends(spec: &mut Value) {
    let shown = |backend: &mut Value| {
        if let Some(resource) = json::object_mut(backend, "resource") {
            json::default(resource, "apiGroup", Value::Null);
        }
    };
    if let Some(backend) = json::object_mut(spec, "defaultBackend") {
        shown(backend);
    }
    for rule in json::list_mut(spec, "rules") {
        let Some(http) = json::object_mut(rule, "http") else {
            continue;
        };
        for path in json::list_mut(http, "paths") {
            if let Some(backend) = json::object_mut(path, "backend") {
                shown(backend);
            }
        }
    }
}

fn hosts(object: &Object) -> String {
    let rules = object.list(&["spec", "rules"]);
    let mut hosts: Vec<&str> = Vec::new();
    let mut has_more = false;
    for rule in rules {
        has_more |= hosts.len() == HOSTS_SHOWN_MAX;
        let host = json::text(rule, "host");
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    let text = hosts.join(",");
    if hosts.is_empty() {
        "*".to_owned()
    } else if has_more {
        format!("{text} + {} more...", rules.len() - HOSTS_SHOWN_MAX)
    } else {
        text
    }
}

fn addresses(object: &Object) -> String {
    let mut all: Vec<&str> = object
        .list(&["status", "loadBalancer", "ingress"])
        .iter()
        .map(|ingress| match json::text(ingress, "ip") {
            "" => json::text(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    all.sort_unstable();
    all.dedup();
    all.join(",")
}

#[cfg(test)]
mod tests;
