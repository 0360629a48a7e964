//! Controller revisions: immutable snapshots of what a controller rolled out.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = row::namespaced(
    "apps",
    "v1",
    Names {
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        singular: "controllerrevision",
        schema: "io.k8s.api.apps.v1.ControllerRevision",
    },
    &ControllerRevision,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Controller", "string", "Controller of the object"),
    column("Revision", "string", "The number of the revision."),
    row::AGE,
];

#[derive(Debug)]
struct ControllerRevision;

impl Rules for ControllerRevision {
    fn default(&self, _object: &mut Object) {}

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = revision(object);
        let detail = match object.get(&["data"]) {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return errors,
            Some(_) => "data must be a valid JSON object",
        };
        errors.push(FieldError::required(&Path::root("data"), detail));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = revision(new);
        let (new, old) = (new.to_value(), old.to_value());
        checks::immutable(&mut errors, &new, &old, "data", &Path::default());
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let controller = object
            .owner_references()
            .find(|owner| owner.controller)
            .map(|owner| {
                let kind = owner.kind.to_lowercase();
                match owner.api_version.split_once('/') {
                    Some((group, _)) => format!("{kind}.{group}/{}", owner.name),
                    None => format!("{kind}/{}", owner.name),
                }
            });
        vec![
            object.name().into(),
            controller.unwrap_or_else(|| "<none>".to_owned()).into(),
            object.i64(&["revision"]).unwrap_or(0).into(),
            print::age_of(object, now),
        ]
    }
}

fn revision(object: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = Path::default();
    checks::nonnegative(&mut errors, &object.to_value(), "revision", &root);
    errors
}

#[cfg(test)]
mod tests;
