//! Resource claim templates: each pod gets a claim of its own made from one. They never change.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::devices::claim;
use crate::kinds::row::{self, Names};
use crate::meta_validate::template_metadata;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

pub const ROW: Resource = row::namespaced(
    "resource.k8s.io",
    "v1",
    Names {
        kind: "ResourceClaimTemplate",
        plural: "resourceclaimtemplates",
        singular: "resourceclaimtemplate",
        schema: "io.k8s.api.resource.v1.ResourceClaimTemplate",
    },
    &ResourceClaimTemplate,
);

const COLUMNS: &[Column] = &[row::NAME, row::AGE];

#[derive(Debug)]
struct ResourceClaimTemplate;

impl Rules for ResourceClaimTemplate {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        if let Some(spec) = object.get_mut(&["spec"]) {
            json::default(spec, "spec", json!({}));
            json::object_mut(spec, "spec").map(claim::default);
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("spec");
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let metadata = json::get(spec, "metadata");
        let mut errors = template_metadata(metadata, &path.child("metadata"));
        errors.extend(claim::spec(json::get(spec, "spec"), &path.child("spec")));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = self.validate_create(new);
        let [new, old] = [new, old].map(|o| o.get(&["spec"]).unwrap_or(&json::NULL));
        if !json::same(new, old) {
            let error = FieldError::invalid(&Path::root("spec"), new.clone(), names::IMMUTABLE);
            errors.push(error.as_go("io.k8s.api.resource.v1.ResourceClaimTemplateSpec"));
        }
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![object.name().into(), print::age_of(object, now)]
    }
}

#[cfg(test)]
mod tests;
