//! Daemon sets: one pod on each node that fits.
//!
//! How often the template changed is counted in an annotation, as clients of old expect.

mod validate;

use crate::field::ErrorList;
use crate::kinds::row::{self, Names, column};
use crate::kinds::{prepare, workload};
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print, scale};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "DaemonSet",
            plural: "daemonsets",
            singular: "daemonset",
            schema: "io.k8s.api.apps.v1.DaemonSet",
        },
        &DaemonSet,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Desired", "integer", "How many nodes should run its pod."),
    column("Current", "integer", "How many nodes run at least one."),
    column("Ready", "integer", "How many of the pods are ready."),
    column(
        "Up-to-date",
        "integer",
        "How many nodes run the template of now.",
    ),
    column(
        "Available",
        "integer",
        "How many pods have been ready for long enough.",
    ),
    column("Node Selector", "string", "Labels that a node must have."),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR,
];

/// Counts changes of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const TEMPLATE_GENERATION_PATH: [&str; 3] = ["metadata", "annotations", TEMPLATE_GENERATION];

#[derive(Debug)]
struct DaemonSet;

impl Rules for DaemonSet {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = json::spec_mut(object.root_mut()) {
            default_spec(spec);
        }
        if object.get(&["status"]).is_none_or(Value::is_null) {
            object.set(&["status"], json!({}));
        }
        default_status(object);
        if template_generation(object).is_none() {
            object.set(&TEMPLATE_GENERATION_PATH, "0".into());
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
        default_status(object);
        if template_generation(object).unwrap_or(0) < 1 {
            set_template_generation(object, 1);
        }
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        let before = template_generation(old).unwrap_or(0);
        let [new_template, old_template] =
            [&*new, old].map(|object| object.get(&["spec", "template"]).unwrap_or(&json::NULL));
        let changed = part != Part::Status && !json::same(new_template, old_template);
        set_template_generation(new, before + i64::from(changed));
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object, None)
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
        let count = |name: &str| object.i64(&["status", name]).unwrap_or(0);
        let [names, images] = workload::container_cells(object);
        let mut cells = vec![object.name().into()];
        cells.extend(COUNTS.map(|name| count(name).into()));
        cells.extend([
            labels_text(object).into(),
            print::age_of(object, now),
            names,
            images,
            scale::selector_text(object.get(&["spec", "selector"]).unwrap_or(&json::NULL)).into(),
        ]);
        cells
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        workload::template_warnings(object)
    }
}

/// In the order of their columns.
const COUNTS: [&str; 5] = [
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
];

fn default_spec(spec: &mut Value) {
    json::default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    json::default_text(strategy, "type", "RollingUpdate");
    if json::text(strategy, "type") == "RollingUpdate" {
        json::default(strategy, "rollingUpdate", json!({}));
        let rolling_update = &mut strategy["rollingUpdate"];
        json::default(rolling_update, "maxUnavailable", 1);
        json::default(rolling_update, "maxSurge", 0);
    }
    json::default(spec, "revisionHistoryLimit", 10);
    json::default(spec, "template", json!({}));
    pod_spec::defaults::template(&mut spec["template"]);
}

/// Counts that are shown even when they are zero.
fn default_status(object: &mut Object) {
    const SHOWN: [&str; 4] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    ];
    if let Some(status) = object.get_mut(&["status"]) {
        for name in SHOWN {
            json::default(status, name, 0);
        }
    }
}

fn template_generation(object: &Object) -> Option<i64> {
    object.annotation(TEMPLATE_GENERATION)?.parse().ok()
}

fn set_template_generation(object: &mut Object, generation: i64) {
    object.set(&TEMPLATE_GENERATION_PATH, generation.to_string().into());
}

fn labels_text(object: &Object) -> String {
    let path = ["spec", "template", "spec", "nodeSelector"];
    let pairs = object
        .string_map(&path)
        .map(|(key, value)| format!("{key}={value}"));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() {
        "<none>".to_owned()
    } else {
        pairs.join(",")
    }
}

#[cfg(test)]
mod tests;
