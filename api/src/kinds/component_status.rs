//! Component statuses: the health of the control plane's parts. Answered by the server when
//! asked, never stored.

use crate::field::ErrorList;
use crate::json;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::{Value, json};

pub const KIND: &str = "ComponentStatus";

pub const ROW: Resource = Resource {
    short_names: &["cs"],
    verbs: &["get", "list"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: KIND,
            plural: "componentstatuses",
            singular: "componentstatus",
            schema: "io.k8s.api.core.v1.ComponentStatus",
        },
        &ComponentStatus,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Status", "string", "Healthy or unhealthy."),
    column("Message", "string", "What the part says."),
    column("Error", "string", "Why it could not be asked."),
];

#[derive(Debug)]
struct ComponentStatus;

impl Rules for ComponentStatus {
    fn default(&self, _object: &mut Object) {}

    fn validate_create(&self, _object: &Object) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        ErrorList::new()
    }

    fn deprecation(&self) -> Option<&'static str> {
        Some("v1 ComponentStatus is deprecated in v1.19+")
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        let conditions = object.list(&["conditions"]).iter();
        let health = conditions
            .into_iter()
            .find(|condition| json::text(condition, "type") == "Healthy");
        let status = match health.map(|health| json::text(health, "status")) {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        };
        let text = |name: &str| health.map_or("", |health| json::text(health, name)).into();
        vec![
            object.name().into(),
            status.into(),
            text("message"),
            text("error"),
        ]
    }
}

/// The status of one part.
pub fn of(name: &str, health: Result<&str, &str>) -> Object {
    let (status, message) = match health {
        Ok(message) => ("True", message),
        Err(message) => ("False", message),
    };
    let condition = json!({ "type": "Healthy", "status": status, "message": message });
    let mut object = Object::new("v1", KIND);
    object.set(&["metadata"], json!({ "name": name }));
    object.set(&["conditions"], json!([condition]));
    object
}

#[cfg(test)]
mod tests;
