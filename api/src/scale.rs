//! The autoscaling/v1 Scale of a Deployment, ReplicaSet, ReplicationController, StatefulSet or a
//! custom resource that has one: replicas of the object seen, and written, through one shape.

use crate::custom::{ScalePath, ScalePaths};
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::row;
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Resource};
use crate::table::{self, Include};
use serde_json::{Map, Value, json};

/// The Scale that `object` shows.
pub fn read(resource: &Resource, object: &Object) -> Object {
    let custom = resource.rules.custom();
    let paths = custom.as_deref().and_then(|custom| custom.scale.as_ref());
    let mut scale = Object::new("autoscaling/v1", "Scale");
    let mut metadata = Map::new();
    for name in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = object.get(&["metadata", name]) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    scale.set(&["metadata"], Value::Object(metadata));
    let seen = Seen::of(paths, object);
    let replicas = seen.replicas.unwrap_or(0);
    scale.set(
        &["spec"],
        if replicas == 0 {
            json!({})
        } else {
            json!({ "replicas": replicas })
        },
    );
    scale.set(&["status", "replicas"], seen.observed.into());
    if !seen.selector.is_empty() {
        scale.set(&["status", "selector"], seen.selector.into());
    }
    scale
}

/// What an object says of its replicas.
struct Seen {
    replicas: Option<i64>,
    observed: i64,
    selector: String,
}

impl Seen {
    /// Where a definition says it is, or where the kinds of ours have it.
    fn of(paths: Option<&ScalePaths>, object: &Object) -> Self {
        let Some(paths) = paths else {
            return Self {
                replicas: object.i64(&["spec", "replicas"]),
                observed: object.i64(&["status", "replicas"]).unwrap_or(0),
                selector: selector_text(object.get(&["spec", "selector"]).unwrap_or(&Value::Null)),
            };
        };
        let count = |path: &ScalePath| path.get(object).and_then(Value::as_i64);
        let selector = paths.selector.as_ref().and_then(|path| path.get(object));
        Self {
            replicas: count(&paths.spec_replicas),
            observed: count(&paths.status_replicas).unwrap_or(0),
            selector: selector.and_then(Value::as_str).unwrap_or("").to_owned(),
        }
    }
}

/// Why an object shows no Scale: its kind has one, and it says nothing of replicas.
pub fn missing(resource: &Resource, object: &Object) -> Option<String> {
    let custom = resource.rules.custom()?;
    let path = &custom.scale.as_ref()?.spec_replicas;
    let text = &path.text;
    let is_missing = path.get(object).is_none();
    is_missing.then(|| format!("the spec replicas field {text:?} does not exist"))
}

/// The Scale as a Table, as upstream prints it: `kubectl get deployment x --subresource=scale`.
pub fn table(scale: &Object, include: Include, now: i64) -> Value {
    let integer = |name: &'static str, description: &'static str| Column {
        name,
        kind: "integer",
        format: "",
        priority: 0,
        description,
    };
    let columns = [
        row::NAME,
        integer("Desired", "Number of pods that are wanted."),
        integer("Available", "Number of pods that were seen."),
        row::AGE,
    ];
    let cells = [
        scale.name().into(),
        scale.i64(&["spec", "replicas"]).unwrap_or(0).into(),
        scale.i64(&["status", "replicas"]).unwrap_or(0).into(),
        print::age_of(scale, now),
    ];
    let mut row = json!({ "cells": cells });
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = table::partial_metadata(scale),
        Include::Object => row["object"] = scale.to_value(),
    }
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": scale.resource_version() },
        "columnDefinitions": table::column_definitions(&columns),
        "rows": [row],
    })
}

/// Puts the `spec.replicas` of `scale` into `object`.
pub fn write(resource: &Resource, object: &mut Object, scale: &Object) {
    let replicas = scale.i64(&["spec", "replicas"]).unwrap_or(0);
    let custom = resource.rules.custom();
    match custom.as_deref().and_then(|custom| custom.scale.as_ref()) {
        Some(paths) => paths.spec_replicas.set(object, replicas.into()),
        None => object.set(&["spec", "replicas"], replicas.into()),
    }
}

/// What is wrong with a Scale that a client sent.
pub fn validate(scale: &Object) -> ErrorList {
    let replicas = scale.i64(&["spec", "replicas"]).unwrap_or(0);
    if replicas < 0 {
        let path = Path::root("spec").child("replicas");
        let detail = crate::names::MUST_NOT_BE_NEGATIVE;
        return vec![FieldError::invalid(&path, replicas, detail)];
    }
    ErrorList::new()
}

/// A selector as the text of a label query: a map of labels, or a LabelSelector.
pub fn selector_text(selector: &Value) -> String {
    let labels = match json::some(selector, "matchLabels") {
        Some(labels) => labels,
        None if json::has(selector, "matchExpressions") => &json::NULL,
        None => selector,
    };
    let mut terms: Vec<(&str, String)> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), format!("{key}={}", value.as_str()?))))
        .collect();
    for expression in json::list(selector, "matchExpressions") {
        terms.push((json::text(expression, "key"), expression_text(expression)));
    }
    // By key; of one key, labels come first and expressions in their order.
    terms.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = terms.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

fn expression_text(expression: &Value) -> String {
    let key = json::text(expression, "key");
    let mut values: Vec<&str> = json::list(expression, "values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    match json::text(expression, "operator") {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

#[cfg(test)]
mod tests;
