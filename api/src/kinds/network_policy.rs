//! Network policies: what traffic pods may send and get.

mod validate;
mod warnings;

use crate::field::ErrorList;
use crate::kinds::row::{self, Names, column};
use crate::kinds::workload;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["netpol"],
    ..row::namespaced(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "NetworkPolicy",
            plural: "networkpolicies",
            singular: "networkpolicy",
            schema: "io.k8s.api.networking.v1.NetworkPolicy",
        },
        &NetworkPolicy,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Pod-Selector", "string", "Which pods it is about."),
    row::AGE,
];

/// Direction of rules, and the field that names the other end.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

#[derive(Debug)]
struct NetworkPolicy;

impl Rules for NetworkPolicy {
    fn default(&self, object: &mut Object) {
        let Some(spec) = json::spec_mut(object.root_mut()) else {
            return;
        };
        json::default(spec, "podSelector", json!({}));
        for (direction, _) in DIRECTIONS {
            for rule in json::list_mut(spec, direction) {
                for port in json::list_mut(rule, "ports") {
                    json::default(port, "protocol", "TCP");
                }
            }
        }
        if json::list(spec, "policyTypes").is_empty() {
            let sends = !json::list(spec, "egress").is_empty();
            spec["policyTypes"] = if sends {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        validate::spec(new, Some(old))
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let selector = object.get(&["spec", "podSelector"]).unwrap_or(&json::NULL);
        vec![
            object.name().into(),
            workload::selector_cell(&scale::selector_text(selector)),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        warnings::of(object)
    }
}

#[cfg(test)]
mod tests;
