//! The rules of a kind that adds nothing: no defaults, no validation, name and creation time
//! printed as upstream prints a kind without a printer of its own.

use crate::field::ErrorList;
use crate::kinds::row;
use crate::object::Object;
use crate::resource::{Column, Part, Rules};
use serde_json::Value;

#[derive(Debug)]
pub struct Plain;

/// The columns of a kind without a printer of its own.
pub const COLUMNS: &[Column] = &[
    row::NAME,
    Column {
        name: "Created At",
        kind: "date",
        format: "",
        priority: 0,
        description: "Time at which the server created this object.",
    },
];

pub fn cells(object: &Object) -> Vec<Value> {
    let created = object.str(&["metadata", "creationTimestamp"]);
    vec![object.name().into(), created.into()]
}

impl Rules for Plain {
    fn default(&self, _object: &mut Object) {}

    fn prepare_create(&self, _object: &mut Object) {}

    fn validate_create(&self, _object: &Object) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        ErrorList::new()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        cells(object)
    }
}
