//! Nodes: registered and reported by agents, tainted and evicted from by controllers.

mod columns;
mod validate;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::prepare;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::pod_spec::defaults::round_quantities;
use crate::resource::{Column, Durability, Part, Resource, Rules, Subresource, SubresourceKind};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["no"],
    subresources: &[
        Subresource {
            name: "proxy",
            kind: SubresourceKind::Connect,
            body: Some(("", "v1", "NodeProxyOptions")),
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        row::STATUS,
    ],
    selectable_fields: &["spec.unschedulable"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "Node",
            plural: "nodes",
            singular: "node",
            schema: "io.k8s.api.core.v1.Node",
        },
        &Node,
    )
};

#[derive(Debug)]
struct Node;

impl Rules for Node {
    fn default(&self, object: &mut Object) {
        for list in ["capacity", "allocatable"] {
            if let Some(resources) = object.get_mut(&["status", list]) {
                round_quantities(resources);
            }
        }
        let allocatable = object.get(&["status", "allocatable"]);
        if allocatable.is_none_or(Value::is_null)
            && let Some(capacity) = object.get(&["status", "capacity"]).cloned()
        {
            object.set(&["status", "allocatable"], capacity);
        }
        pod_cidrs(object);
        node_info(object);
    }

    /// A node may be created together with its status.
    fn prepare_create(&self, object: &mut Object) {
        object.remove(&["spec", "configSource"]);
        object.remove(&["status", "config"]);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        if part == Part::Main {
            new.remove(&["spec", "configSource"]);
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::node(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        let mut errors = match part {
            Part::Status => ErrorList::new(),
            Part::Main | Part::Other(_) => validate::node(new),
        };
        errors.extend(validate::update(new, old, part));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn field(&self, object: &Object, name: &str) -> String {
        match name {
            "spec.unschedulable" => object.bool(&["spec", "unschedulable"]).to_string(),
            _ => String::new(),
        }
    }

    fn durability(&self, new: &Object, old: Option<&Object>, part: Part<'_>) -> Durability {
        match old {
            Some(old) if part == Part::Status && is_heartbeat(new, old) => Durability::Renewal,
            _ => Durability::Synced,
        }
    }
}

/// Fields that are always shown, empty until the agent reports.
fn node_info(object: &mut Object) {
    const TEXTS: [&str; 10] = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    json::default_in(object.root_mut(), "status", json!({}));
    let Some(status) = object.get_mut(&["status"]) else {
        return;
    };
    json::default(
        status,
        "daemonEndpoints",
        json!({ "kubeletEndpoint": { "Port": 0 } }),
    );
    json::default(status, "nodeInfo", json!({}));
    for text in TEXTS {
        json::default(&mut status["nodeInfo"], text, "");
    }
}

/// The address range has an old field for one and a new one for a list: both are shown, and when
/// they differ the old one is followed.
fn pod_cidrs(object: &mut Object) {
    let one = object.str(&["spec", "podCIDR"]).to_owned();
    match object.list(&["spec", "podCIDRs"]).first().cloned() {
        Some(first) if one.is_empty() => object.set(&["spec", "podCIDR"], first),
        first if !one.is_empty() && first != Some(one.as_str().into()) => {
            object.set(&["spec", "podCIDRs"], vec![Value::from(one)].into());
        }
        _ => {}
    }
}

/// True when nothing of the status changed but the times at which conditions were seen.
fn is_heartbeat(new: &Object, old: &Object) -> bool {
    let without_times = |object: &Object| {
        let mut status = object.get(&["status"]).cloned().unwrap_or_default();
        for condition in json::list_mut(&mut status, "conditions") {
            if let Some(condition) = condition.as_object_mut() {
                condition.remove("lastHeartbeatTime");
            }
        }
        status
    };
    let same = |path: &[&str]| new.get(path) == old.get(path);
    same(&["metadata", "labels"])
        && same(&["metadata", "annotations"])
        && without_times(new) == without_times(old)
}

#[cfg(test)]
mod tests;
