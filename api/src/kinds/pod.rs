//! Pods: the one kind that runs.

pub mod binding;
pub mod columns;
mod device_claims;
pub mod eviction;
pub mod strategy;
pub mod summary;
mod validate;
mod validate_update;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::row::{self, Names, PART_VERBS};
use crate::kinds::workload;
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, Part, Requester, Resource, Rules, Subresource, SubresourceKind};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["po"],
    categories: &["all"],
    subresources: &[
        connect("attach", "PodAttachOptions", &["create", "get"]),
        Subresource {
            name: "binding",
            kind: SubresourceKind::Action,
            body: Some(("", "v1", "Binding")),
            verbs: &["create"],
        },
        part("ephemeralcontainers"),
        Subresource {
            name: "eviction",
            kind: SubresourceKind::Action,
            body: Some(("policy", "v1", "Eviction")),
            verbs: &["create"],
        },
        connect("exec", "PodExecOptions", &["create", "get"]),
        Subresource {
            name: "log",
            kind: SubresourceKind::Connect,
            body: None,
            verbs: &["get"],
        },
        connect("portforward", "PodPortForwardOptions", &["create", "get"]),
        connect(
            "proxy",
            "PodProxyOptions",
            &["create", "delete", "get", "patch", "update"],
        ),
        part("resize"),
        row::STATUS,
    ],
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "Pod",
            plural: "pods",
            singular: "pod",
            schema: "io.k8s.api.core.v1.Pod",
        },
        &Pod,
    )
};

const fn connect(
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource {
        name,
        kind: SubresourceKind::Connect,
        body: Some(("", "v1", kind)),
        verbs,
    }
}

const fn part(name: &'static str) -> Subresource {
    Subresource {
        name,
        kind: SubresourceKind::Part,
        body: None,
        verbs: PART_VERBS,
    }
}

#[derive(Debug)]
struct Pod;

impl Rules for Pod {
    fn field_alias(&self, name: &str) -> Option<&'static str> {
        (name == "spec.host").then_some("spec.nodeName")
    }

    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        if let Some(spec) = object.get_mut(&["spec"]) {
            pod_spec::defaults::spec(spec);
            pod_spec::defaults::pod(spec);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        strategy::prepare_create(object);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        strategy::prepare_update(new, old, part);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn stamp(
        &self,
        pod: &mut Object,
        old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        now: &str,
    ) {
        if old.is_none() {
            strategy::date_conditions(pod, now);
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::create(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new, old),
            Part::Other("ephemeralcontainers") => validate_update::ephemeral(new, old),
            Part::Other("resize") => validate_update::resize(new, old),
            Part::Main | Part::Other(_) => validate_update::main(new, old),
        }
    }

    fn grace_seconds(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        Some(strategy::grace_seconds(object, asked))
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn row_conditions(&self, object: &Object) -> Value {
        let message = match object.str(&["status", "phase"]) {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return Value::Null,
        };
        json!([{
            "type": "Completed",
            "status": "True",
            "reason": object.str(&["status", "phase"]),
            "message": message,
        }])
    }

    fn field(&self, object: &Object, name: &str) -> String {
        match name {
            "spec.hostNetwork" => object.bool(&["spec", "hostNetwork"]).to_string(),
            "status.podIP" => match object.list(&["status", "podIPs"]) {
                [first, ..] => json::text(first, "ip").to_owned(),
                [] => object.str(&["status", "podIP"]).to_owned(),
            },
            // The name is known, and never has a value.
            "status.podIPs" => String::new(),
            _ => {
                let path: Vec<&str> = name.split('.').collect();
                object.str(&path).to_owned()
            }
        }
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let mut warnings = match object.str(&["spec", "hostname"]) {
            "" => workload::name_warnings(object, "the Pod's hostname"),
            _ => Vec::new(),
        };
        let [metadata, spec] = ["metadata", "spec"].map(|part| object.get(&[part]));
        let [metadata, spec] = [metadata, spec].map(|part| part.unwrap_or(&json::NULL));
        warnings.extend(pod_spec::warnings::of_pod(metadata, spec));
        warnings
    }

    /// Of pods that are there already people are not told: programs update them, and often.
    fn warnings_on_update(&self, _new: &Object, _old: &Object) -> Vec<String> {
        Vec::new()
    }

    fn early_warnings(&self, object: &Object) -> Vec<String> {
        let spec = object.get(&["spec"]).unwrap_or(&json::NULL);
        let annotations = object.get(&["metadata", "annotations"]);
        annotations.map_or_else(Vec::new, |all| {
            pod_spec::profiles::apparmor_of_pod(all, spec)
        })
    }
}

#[cfg(test)]
mod tests;
