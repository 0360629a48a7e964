//! Priority levels: how many requests are worked on at a time, and who waits.

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
            kind: "PriorityLevelConfiguration",
            plural: "prioritylevelconfigurations",
            singular: "prioritylevelconfiguration",
            schema: "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
        },
        &PriorityLevelConfiguration,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Type",
        "string",
        "Whether requests of the level are limited, or never wait.",
    ),
    column(
        "NominalConcurrencyShares",
        "string",
        "The level's share of what the server works on at a time.",
    ),
    column("Queues", "string", "How many queues the level has."),
    column(
        "HandSize",
        "string",
        "From how many queues a flow is dealt the shortest.",
    ),
    column(
        "QueueLengthLimit",
        "string",
        "How many requests may wait in one queue.",
    ),
    row::AGE,
];

const SHARES_DEFAULT: i64 = 30;
const HAND_SIZE_DEFAULT: i64 = 8;
const QUEUES_DEFAULT: i64 = 64;
const QUEUE_LENGTH_DEFAULT: i64 = 50;

#[derive(Debug)]
struct PriorityLevelConfiguration;

impl Rules for PriorityLevelConfiguration {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        flow_control::default_status(object);
        let Some(spec) = object.get_mut(&["spec"]) else {
            return;
        };
        json::default_text(spec, "type", "");
        if let Some(exempt) = json::object_mut(spec, "exempt") {
            json::default(exempt, "nominalConcurrencyShares", 0);
            json::default(exempt, "lendablePercent", 0);
        }
        let Some(limited) = json::object_mut(spec, "limited") else {
            return;
        };
        json::default(limited, "nominalConcurrencyShares", SHARES_DEFAULT);
        json::default(limited, "limitResponse", json!({}));
        json::default(limited, "lendablePercent", 0);
        let response = &mut limited["limitResponse"];
        json::default_text(response, "type", "");
        if let Some(queuing) = json::object_mut(response, "queuing") {
            json::default_int(queuing, "queues", QUEUES_DEFAULT);
            json::default_int(queuing, "handSize", HAND_SIZE_DEFAULT);
            json::default_int(queuing, "queueLengthLimit", QUEUE_LENGTH_DEFAULT);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = validate::level(object);
        errors.extend(flow_control::conditions(object));
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => flow_control::conditions(new),
            Part::Main | Part::Other(_) => self.validate_create(new),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let limited = object.get(&["spec", "limited"]);
        let queuing = limited.map(|limited| json::at(limited, &["limitResponse", "queuing"]));
        let number = |of: Option<&Value>, name: &str| {
            let of = of.filter(|of| !of.is_null());
            of.map_or("<none>".into(), |of| {
                Value::from(json::int(of, name).unwrap_or(0))
            })
        };
        vec![
            object.name().into(),
            object.str(&["spec", "type"]).into(),
            number(limited, "nominalConcurrencyShares"),
            number(queuing, "queues"),
            number(queuing, "handSize"),
            number(queuing, "queueLengthLimit"),
            print::age_of(object, now),
        ]
    }
}

#[cfg(test)]
mod tests;
