//! The meta.k8s.io/v1 Table: what `kubectl get` prints.
//!
//! Columns and cells come from the rules of the kind; this builds the document around them.

use crate::object::Object;
use crate::resource::{Column, Resource};
use serde_json::{Value, json};

/// What a row carries of its object beside the cells (`includeObject` of the request).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    None,
    /// The object's metadata as a PartialObjectMetadata.
    #[default]
    Metadata,
    Object,
}

impl Include {
    /// The request's `includeObject`; `None` for a value that is not supported.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// `columnDefinitions`.
pub fn column_definitions(columns: &[Column]) -> Value {
    columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        })
        .collect()
}

/// One row. `now` in seconds since the epoch.
pub fn row(resource: &Resource, object: &Object, include: Include, now: i64) -> Value {
    let cells = resource.rules.cells(object, now);
    let mut row = json!({ "cells": cells });
    let conditions = resource.rules.row_conditions(object);
    if !conditions.is_null() {
        row["conditions"] = conditions;
    }
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = partial_metadata(object),
        Include::Object => row["object"] = object.to_value(),
    }
    row
}

/// The object as a PartialObjectMetadata.
pub fn partial_metadata(object: &Object) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get(&["metadata"]).cloned().unwrap_or_else(|| json!({})),
    })
}

/// A whole table. `list_metadata` is the list's or, for one object, its resource version.
/// Column definitions are left out of watch events after the first: `with_columns` false.
pub fn build<'a>(
    resource: &Resource,
    objects: impl IntoIterator<Item = &'a Object>,
    list_metadata: Value,
    include: Include,
    with_columns: bool,
    now: i64,
) -> Value {
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| row(resource, object, include, now))
        .collect();
    let columns = if with_columns {
        column_definitions(resource.rules.columns())
    } else {
        Value::Null
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

#[cfg(test)]
mod tests;
