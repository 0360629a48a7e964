//! Stateful sets: pods with names and volumes of their own.

mod validate;

use crate::field::ErrorList;
use crate::kinds::row::{self, Names, column};
use crate::kinds::{prepare, workload};
use crate::object::Object;
use crate::pod_spec;
use crate::resource::{Column, NameRule, Part, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["sts"],
    categories: &["all"],
    subresources: &[row::SCALE, row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "StatefulSet",
            plural: "statefulsets",
            singular: "statefulset",
            schema: "io.k8s.api.apps.v1.StatefulSet",
        },
        &StatefulSet,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Ready", "string", "Number of the pod with ready state"),
    row::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
];

#[derive(Debug)]
struct StatefulSet;

impl Rules for StatefulSet {
    fn default(&self, object: &mut Object) {
        if let Some(spec) = json::spec_mut(object.root_mut()) {
            default_spec(spec);
        }
        if object.get(&["status"]).is_none_or(Value::is_null) {
            object.set(&["status"], json!({}));
        }
        default_status(object);
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
        default_status(object);
        drop_max_unavailable(object);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
        drop_max_unavailable(new);
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

    /// The name goes into the names and hostnames of its pods.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let ready = object.i64(&["status", "readyReplicas"]).unwrap_or(0);
        let desired = object.i64(&["spec", "replicas"]).unwrap_or(0);
        let [names, images] = workload::container_cells(object);
        vec![
            object.name().into(),
            format!("{ready}/{desired}").into(),
            print::age_of(object, now),
            names,
            images,
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let mut warnings = workload::template_warnings(object);
        if object.i64(&["spec", "revisionHistoryLimit"]).unwrap_or(0) < 0 {
            let warning = "spec.revisionHistoryLimit: a negative value retains all historical \
                           revisions; a value >= 0 is recommended";
            warnings.push(warning.to_owned());
        }
        warnings
    }
}

fn default_spec(spec: &mut Value) {
    json::default_text(spec, "podManagementPolicy", "OrderedReady");
    json::default(spec, "serviceName", "");
    if let Some(ordinals) = json::object_mut(spec, "ordinals") {
        json::default(ordinals, "start", 0);
    }
    json::default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    if json::text(strategy, "type").is_empty() {
        json::default_text(strategy, "type", "RollingUpdate");
        json::default(strategy, "rollingUpdate", json!({}));
    }
    if json::text(strategy, "type") == "RollingUpdate"
        && let Some(rolling_update) = json::object_mut(strategy, "rollingUpdate")
    {
        json::default(rolling_update, "partition", 0);
    }
    json::default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    let retention = &mut spec["persistentVolumeClaimRetentionPolicy"];
    json::default_text(retention, "whenDeleted", "Retain");
    json::default_text(retention, "whenScaled", "Retain");
    json::default(spec, "replicas", 1);
    json::default(spec, "revisionHistoryLimit", 10);
    json::default(spec, "template", json!({}));
    pod_spec::defaults::template(&mut spec["template"]);
    for claim in json::list_mut(spec, "volumeClaimTemplates") {
        default_claim(claim);
    }
}

/// A claim says of itself what it is, and where it stands.
fn default_claim(claim: &mut Value) {
    if !claim.is_object() {
        return;
    }
    claim["apiVersion"] = "v1".into();
    claim["kind"] = "PersistentVolumeClaim".into();
    json::default(claim, "spec", json!({}));
    pod_spec::defaults::claim_spec(&mut claim["spec"]);
    json::default(claim, "status", json!({}));
    json::default_text(&mut claim["status"], "phase", "Pending");
}

/// Counts that are shown even when they are zero.
fn default_status(object: &mut Object) {
    if let Some(status) = object.get_mut(&["status"]) {
        json::default(status, "replicas", 0);
        json::default(status, "availableReplicas", 0);
    }
}

/// Upstream has the field behind a gate that is shut.
fn drop_max_unavailable(object: &mut Object) {
    object.remove(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
}

#[cfg(test)]
mod tests;
