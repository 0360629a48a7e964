//! Flow schemas: which requests wait in which priority level.

mod validate;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::flow_control::{self, GROUP};
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "FlowSchema",
            plural: "flowschemas",
            singular: "flowschema",
            schema: "io.k8s.api.flowcontrol.v1.FlowSchema",
        },
        &FlowSchema,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "PriorityLevel",
        "string",
        "The priority level in which the requests wait.",
    ),
    column(
        "MatchingPrecedence",
        "string",
        "Of the schemas that match a request, the one with the lowest number is taken.",
    ),
    column(
        "DistinguisherMethod",
        "string",
        "What tells one flow of the schema from another.",
    ),
    row::AGE,
    column(
        "MissingPL",
        "string",
        "Whether the priority level is not there, or broken.",
    ),
];

const PRECEDENCE_DEFAULT: i64 = 1000;

#[derive(Debug)]
struct FlowSchema;

impl Rules for FlowSchema {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        flow_control::default_status(object);
        let Some(spec) = object.get_mut(&["spec"]) else {
            return;
        };
        json::default(spec, "priorityLevelConfiguration", json!({}));
        json::default_text(&mut spec["priorityLevelConfiguration"], "name", "");
        json::default_int(spec, "matchingPrecedence", PRECEDENCE_DEFAULT);
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = validate::spec(object);
        errors.extend(flow_control::conditions(object));
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => flow_control::conditions(new),
            Part::Main | Part::Other(_) => self.validate_create(new),
        }
    }

    /// The first that matches a request is the one that counts.
    fn row_rank(&self) -> Option<fn(&Object) -> i64> {
        Some(|schema| {
            let precedence = schema.i64(&["spec", "matchingPrecedence"]);
            precedence.unwrap_or(PRECEDENCE_DEFAULT)
        })
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let dangling = object
            .list(&["status", "conditions"])
            .iter()
            .find(|condition| condition["type"] == "Dangling");
        let method = match object.get(&["spec", "distinguisherMethod"]) {
            Some(Value::Object(method)) => method.get("type").cloned().unwrap_or("".into()),
            _ => "<none>".into(),
        };
        vec![
            object.name().into(),
            object
                .str(&["spec", "priorityLevelConfiguration", "name"])
                .into(),
            object
                .i64(&["spec", "matchingPrecedence"])
                .unwrap_or(0)
                .into(),
            method,
            print::age_of(object, now),
            dangling.map_or("?", |one| json::text(one, "status")).into(),
        ]
    }
}

#[cfg(test)]
mod tests;
