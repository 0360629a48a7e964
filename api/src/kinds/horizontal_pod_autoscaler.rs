//! Horizontal pod autoscalers: as many pods as the load asks for. Stored as autoscaling/v2; the
//! first version is a view of the same objects, which keeps in annotations what it has no field
//! for.

mod columns;
mod convert;
mod defaults;
mod go_json;
mod metrics;
mod validate;

use crate::field::ErrorList;
use crate::kinds::prepare;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

const NAMES: Names = Names {
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    singular: "horizontalpodautoscaler",
    schema: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
};

pub const ROW: Resource = Resource {
    short_names: &["hpa"],
    categories: &["all"],
    subresources: &[row::STATUS],
    ..row::namespaced("autoscaling", "v2", NAMES, &Autoscaler)
};

/// The view of the first version on the same objects.
pub const V1_ROW: Resource = Resource {
    version: "v1",
    schema: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
    is_second_view: true,
    rules: &FirstAutoscaler,
    ..ROW
};

#[derive(Debug)]
struct Autoscaler;

impl Rules for Autoscaler {
    fn default(&self, object: &mut Object) {
        defaults::autoscaler(object);
    }

    fn prepare_create(&self, object: &mut Object) {
        object.remove(&["status"]);
        defaults::status(object);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new),
            Part::Main | Part::Other(_) => validate::spec(new, Some(old)),
        }
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(object, now)
    }
}

/// Its functions see the object in this view's form, except `cells` and `field`, which may be
/// given either form.
#[derive(Debug)]
struct FirstAutoscaler;

/// Does to a view what is done to the stored form.
fn through_stored(object: &mut Object, act: impl FnOnce(&mut Object)) {
    convert::to_stored(object);
    act(object);
    convert::from_stored(object);
}

impl Rules for FirstAutoscaler {
    fn default(&self, object: &mut Object) {
        defaults::first_autoscaler(object);
        // What the annotations say is brought into its one form.
        through_stored(object, |_| {});
    }

    fn prepare_create(&self, object: &mut Object) {
        through_stored(object, |object| Autoscaler.prepare_create(object));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        let old = convert::stored(old);
        through_stored(new, |new| Autoscaler.prepare_update(new, &old, part));
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        Autoscaler.validate_create(&convert::stored(object))
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        Autoscaler.validate_update(&convert::stored(new), &convert::stored(old), part)
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        columns::cells(&convert::stored(object), now)
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
