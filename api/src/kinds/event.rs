//! Events: what happened, for people. One stored form (core v1) and two views of it.

mod columns;
mod convert;
mod validate;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, Durability, NameRule, Part, Resource, Rules};
use serde_json::{Value, json};

const CORE_NAMES: Names = Names {
    kind: "Event",
    plural: "events",
    singular: "event",
    schema: "io.k8s.api.core.v1.Event",
};

/// The core view, which is the stored form.
pub const ROW: Resource = Resource {
    short_names: &["ev"],
    selectable_fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    ..row::namespaced("", "v1", CORE_NAMES, &CoreEvent)
};

/// The view of events.k8s.io on the same objects.
pub const NEW_ROW: Resource = Resource {
    short_names: &["ev"],
    selectable_fields: &[
        "reason",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reportingController",
        "type",
    ],
    stored_as: ("", "events"),
    is_second_view: true,
    ..row::namespaced(
        "events.k8s.io",
        "v1",
        Names {
            schema: "io.k8s.api.events.v1.Event",
            ..CORE_NAMES
        },
        &NewEvent,
    )
};

#[derive(Debug)]
struct CoreEvent;

impl Rules for CoreEvent {
    /// Fields that are always shown.
    fn default(&self, object: &mut Object) {
        let root = object.root_mut();
        json::default_in(root, "source", json!({}));
        for text in ["reportingComponent", "reportingInstance"] {
            json::default_in(root, text, "");
        }
        for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            json::default_in(root, time, Value::Null);
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::legacy(object, "reportingComponent")
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    /// Upstream looks closer at the names of the newer kind alone.
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn field(&self, object: &Object, name: &str) -> String {
        let path: Vec<&str> = name.split('.').collect();
        match name {
            "source" => match object.str(&["source", "component"]) {
                "" => object.str(&["reportingComponent"]).to_owned(),
                component => component.to_owned(),
            },
            _ => object.str(&path).to_owned(),
        }
    }

    /// An event lost in a crash is no loss.
    fn durability(&self, _new: &Object, _old: Option<&Object>, _part: Part<'_>) -> Durability {
        Durability::Lazy
    }
}

/// Its functions see the object in this view's form, except `cells` and `field`, which may be
/// given either form.
#[derive(Debug)]
struct NewEvent;

impl Rules for NewEvent {
    /// Fields that are always shown.
    fn default(&self, object: &mut Object) {
        for time in convert::TIMES {
            json::default_in(object.root_mut(), time, Value::Null);
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let stored = convert::stored(object);
        let mut errors = validate::legacy(&stored, "reportingController");
        errors.extend(validate::strict(&stored));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let (new, old) = (convert::stored(new), convert::stored(old));
        let mut errors = validate::legacy(&new, "reportingController");
        errors.extend(validate::strict_update(&new, &old));
        errors
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(&convert::stored(object), now)
    }

    fn field(&self, object: &Object, name: &str) -> String {
        let stored = convert::stored(object);
        let name = match name {
            "reportingController" => "reportingComponent".to_owned(),
            name => name.replacen("regarding.", "involvedObject.", 1),
        };
        CoreEvent.field(&stored, &name)
    }

    fn durability(&self, _new: &Object, _old: Option<&Object>, _part: Part<'_>) -> Durability {
        Durability::Lazy
    }

    fn to_stored(&self, object: &mut Object) {
        convert::to_stored(object);
    }

    fn from_stored(&self, object: &mut Object) {
        convert::from_stored(object);
    }
}

#[cfg(test)]
mod tests;
