//! Custom resource definitions: kinds that users bring.
//!
//! Says nothing of whether a kind is served: the conditions of the status are for those who serve
//! (`crate::custom`).

mod costs; // What expressions may cost together.
mod defaults; // Default values in a schema.
mod expressions; // Rules in a schema.
mod field_path; // Paths to fields, checked against a schema.
mod formats; // Formats that nothing is known of.
mod schema; // What a schema may say at all.
mod structural; // Whether every value has a known type.
mod validate; // Start reading here.
mod versions; // One version: its schema, subresources, columns, selectable fields.

use crate::custom;
use crate::field::ErrorList;
use crate::kinds::admission_registration::webhook;
use crate::kinds::plain;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules, prepare_update_by_part};
use crate::{json, kinds::prepare};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        "apiextensions.k8s.io",
        "v1",
        Names {
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
            singular: "customresourcedefinition",
            schema: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.\
                     CustomResourceDefinition",
        },
        &CustomResourceDefinition,
    )
};

#[derive(Debug)]
struct CustomResourceDefinition;

impl Rules for CustomResourceDefinition {
    fn default(&self, object: &mut Object) {
        let root = object.root_mut();
        json::default_in(root, "spec", json!({}));
        json::default_in(root, "status", json!({}));
        if let Some(spec) = object.get_mut(&["spec"]) {
            default_spec(spec);
        }
        let storage = storage_version(object).map(str::to_owned);
        if let Some(status) = object.get_mut(&["status"]) {
            default_status(status);
            if let Some(storage) = storage
                && json::list(status, "storedVersions").is_empty()
            {
                status["storedVersions"] = json!([storage]);
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        let mut status = json!({});
        default_status(&mut status);
        status["storedVersions"] = storage_version(object).map_or(Value::Null, |v| json!([v]));
        object.set(&["status"], status);
    }

    /// The status leaves the spec alone and takes metadata along, as upstream's does.
    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        if part == Part::Status {
            prepare::keep(new, old, &["spec"]);
            return;
        }
        prepare_update_by_part(new, old, part);
        let Some(storage) = storage_version(new).map(str::to_owned) else {
            return;
        };
        let path = &["status", "storedVersions"];
        let mut stored = new.list(path).to_vec();
        if !stored.iter().any(|version| *version == storage) {
            stored.push(storage.into());
            new.set(path, stored.into());
        }
    }

    fn announce_delete(&self, object: &mut Object, now: &str) {
        custom::begin_deletion(object, now);
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::create(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new),
            Part::Main | Part::Other(_) => validate::update(new, old),
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        plain::COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        plain::cells(object)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        formats::warnings(object)
    }
}

fn default_spec(spec: &mut Value) {
    json::default_text(spec, "group", "");
    json::default_text(spec, "scope", "");
    json::default(spec, "names", json!({}));
    let names = &mut spec["names"];
    json::default_text(names, "plural", "");
    json::default_text(names, "kind", "");
    let kind = json::text(names, "kind").to_owned();
    if !kind.is_empty() {
        json::default_text(names, "singular", &kind.to_lowercase());
        json::default_text(names, "listKind", &format!("{kind}List"));
    }
    json::default(spec, "versions", Value::Null);
    json::default(spec, "conversion", json!({ "strategy": "None" }));
    if let Some(webhook) = json::object_mut(&mut spec["conversion"], "webhook")
        && let Some(config) = json::object_mut(webhook, "clientConfig")
    {
        webhook::default_port(config);
    }
}

/// What upstream shows of a status that says nothing.
fn default_status(status: &mut Value) {
    json::default(status, "conditions", Value::Null);
    json::default(status, "acceptedNames", json!({}));
    json::default_text(&mut status["acceptedNames"], "plural", "");
    json::default_text(&mut status["acceptedNames"], "kind", "");
    json::default(status, "storedVersions", Value::Null);
}

fn storage_version(object: &Object) -> Option<&str> {
    let versions = object.list(&["spec", "versions"]).iter();
    let mut storage = versions.filter(|version| json::flag(version, "storage"));
    storage.next().map(|version| json::text(version, "name"))
}

#[cfg(test)]
mod tests;
