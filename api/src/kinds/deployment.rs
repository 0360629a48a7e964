//! Deployments: declarative updates of replica sets.

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
    short_names: &["deploy"],
    categories: &["all"],
    subresources: &[row::SCALE, row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "Deployment",
            plural: "deployments",
            singular: "deployment",
            schema: "io.k8s.api.apps.v1.Deployment",
        },
        &Deployment,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Ready", "string", "Number of the pod with ready state"),
    column(
        "Up-to-date",
        "string",
        "How many pods have the template of now.",
    ),
    column(
        "Available",
        "string",
        "How many pods have been ready for long enough.",
    ),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR,
];

#[derive(Debug)]
struct Deployment;

impl Rules for Deployment {
    fn default(&self, object: &mut Object) {
        let Some(spec) = json::spec_mut(object.root_mut()) else {
            return;
        };
        json::default(spec, "replicas", 1);
        json::default(spec, "strategy", json!({}));
        let strategy = &mut spec["strategy"];
        json::default_text(strategy, "type", "RollingUpdate");
        if json::text(strategy, "type") == "RollingUpdate" {
            json::default(strategy, "rollingUpdate", json!({}));
            let rolling_update = &mut strategy["rollingUpdate"];
            json::default(rolling_update, "maxUnavailable", "25%");
            json::default(rolling_update, "maxSurge", "25%");
        }
        json::default(spec, "revisionHistoryLimit", 10);
        json::default(spec, "progressDeadlineSeconds", 600);
        json::default(spec, "template", json!({}));
        pod_spec::defaults::template(&mut spec["template"]);
        json::default_in(object.root_mut(), "status", json!({}));
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    /// The status leaves the spec and the labels alone, and may change annotations.
    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        if part == Part::Status {
            prepare::keep(new, old, &["metadata", "labels"]);
        }
    }

    fn counts_generations(&self) -> bool {
        true
    }

    /// Annotations count too: they are copied to the replica sets.
    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        let same = |path: &[&str]| {
            let [new, old] = [new, old].map(|object| object.get(path).unwrap_or(&json::NULL));
            json::same(new, old)
        };
        !same(&["spec"]) || !same(&["metadata", "annotations"])
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
        let desired = object.i64(&["spec", "replicas"]).unwrap_or(0);
        let [names, images] = workload::container_cells(object);
        let selector = object.get(&["spec", "selector"]).unwrap_or(&json::NULL);
        vec![
            object.name().into(),
            format!("{}/{desired}", count("readyReplicas")).into(),
            count("updatedReplicas").into(),
            count("availableReplicas").into(),
            print::age_of(object, now),
            names,
            images,
            scale::selector_text(selector).into(),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        workload::warnings(object)
    }
}

#[cfg(test)]
mod tests;
