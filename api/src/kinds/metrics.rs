//! `metrics.k8s.io`: what nodes and pods use. Measured by the nodes and answered when asked,
//! never stored.
//!
//! Kinds, words and columns are metrics-server's, whose place this takes.

use crate::field::ErrorList;
use crate::go_duration;
use crate::json;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::quantity::{Format, Quantity};
use crate::resource::{Column, Part, Resource, Rules};
use crate::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

pub const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";
/// What is not there is named by these, as metrics-server does.
pub const NODE_METRICS: &str = "nodemetrics";
pub const POD_METRICS: &str = "podmetrics";

const VERBS: &[&str] = &["get", "list"];

pub const NODES: Resource = Resource {
    verbs: VERBS,
    ..row::cluster(
        GROUP,
        VERSION,
        Names {
            kind: "NodeMetrics",
            plural: "nodes",
            singular: "",
            schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
        },
        &Measured,
    )
};

pub const PODS: Resource = Resource {
    verbs: VERBS,
    ..row::namespaced(
        GROUP,
        VERSION,
        Names {
            kind: "PodMetrics",
            plural: "pods",
            singular: "",
            schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
        },
        &Measured,
    )
};

const fn of_format(name: &'static str, format: &'static str) -> Column {
    Column {
        format,
        ..row::column(name, "string", "")
    }
}

const COLUMNS: &[Column] = &[
    row::NAME,
    of_format("cpu", "quantity"),
    of_format("memory", "quantity"),
    of_format("Window", "duration"),
];

/// One interval of one container or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The end of the interval, by the clock of the node.
    pub at: Timestamp,
    pub window_ns: u64,
    pub cpu_nano_cores: u64,
    /// The working set at the end.
    pub memory_bytes: u64,
}

impl Used {
    fn usage(&self) -> Value {
        let cpu = i64::try_from(self.cpu_nano_cores).unwrap_or(i64::MAX);
        let memory = i64::try_from(self.memory_bytes).unwrap_or(i64::MAX);
        json!({
            "cpu": Quantity::from_nano(cpu, Format::DecimalSi).to_string(),
            "memory": Quantity::from_units(memory, Format::BinarySi).to_string(),
        })
    }
}

/// The metrics of a node, with its labels.
pub fn node(name: &str, labels: Value, used: &Used, now: Timestamp) -> Object {
    let mut object = measured(&NODES, json!({ "name": name }), labels, used, now);
    object.set(&["usage"], used.usage());
    object
}

/// The metrics of a pod, with its labels: of each container by name. `None` without any.
pub fn pod(
    (namespace, name): (&str, &str),
    labels: Value,
    containers: &[(&str, Used)],
    now: Timestamp,
) -> Option<Object> {
    // As metrics-server: the interval that ended first stands for all.
    let (_, first) = containers.iter().min_by_key(|(_, used)| used.at)?;
    let metadata = json!({ "name": name, "namespace": namespace });
    let mut object = measured(&PODS, metadata, labels, first, now);
    let each = containers
        .iter()
        .map(|(name, used)| json!({ "name": name, "usage": used.usage() }));
    object.set(&["containers"], each.collect());
    Some(object)
}

fn measured(
    row: &Resource,
    mut metadata: Value,
    labels: Value,
    used: &Used,
    now: Timestamp,
) -> Object {
    metadata["creationTimestamp"] = timestamp::format_time(now).into();
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        metadata["labels"] = labels;
    }
    let mut object = Object::new(&row.api_version(), row.kind);
    object.set(&["metadata"], metadata);
    let at = timestamp::format_time(used.at);
    object.set(&["timestamp"], at.into());
    let window = go_duration::format(used.window_ns);
    object.set(&["window"], window.into());
    object
}

#[derive(Debug)]
struct Measured;

impl Rules for Measured {
    fn default(&self, _object: &mut Object) {}

    fn validate_create(&self, _object: &Object) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        ErrorList::new()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    /// A pod uses what its containers do together.
    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        let own = object.get(&["usage"]).into_iter();
        let containers = object.list(&["containers"]).iter();
        let usages: Vec<&Value> = own
            .chain(containers.map(|one| json::get(one, "usage")))
            .collect();
        let sum = |resource: &str| {
            let each = usages
                .iter()
                .filter_map(|usage| Quantity::from_value(json::get(usage, resource)).ok());
            let sum = each.reduce(Quantity::plus).unwrap_or(Quantity::ZERO);
            Value::from(sum.to_string())
        };
        vec![
            object.name().into(),
            sum("cpu"),
            sum("memory"),
            object.str(&["window"]).into(),
        ]
    }
}

#[cfg(test)]
mod tests;
