//! Resource quotas: how much a namespace may use in all.

mod validate;

use crate::field::{ErrorList, Path};
use crate::kinds::prepare;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::pod_spec::defaults;
use crate::quantity::Quantity;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    short_names: &["quota"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ResourceQuota",
            plural: "resourcequotas",
            singular: "resourcequota",
            schema: "io.k8s.api.core.v1.ResourceQuota",
        },
        &ResourceQuota,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Request",
        "string",
        "What is used and what there may be, of all but limits.",
    ),
    column(
        "Limit",
        "string",
        "What is used and what there may be, of limits.",
    ),
    row::AGE,
];

/// Lists of resources, and where they stand.
const LISTS: [[&str; 2]; 3] = [["spec", "hard"], ["status", "hard"], ["status", "used"]];

#[derive(Debug)]
struct ResourceQuota;

impl Rules for ResourceQuota {
    fn default(&self, object: &mut Object) {
        for list in LISTS {
            object.get_mut(&list).map(defaults::round_quantities);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare::status_keeps_spec(new, old, part);
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        if part == Part::Status {
            return validate::status(new);
        }
        let mut errors = validate::spec(new);
        errors.extend(validate::same_scopes(new, old));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        let status = object.get(&["status"]).unwrap_or(&Value::Null);
        for (name, hard) in json::entries(status, "hard") {
            let shown = |value: &Value| {
                Quantity::from_value(value)
                    .unwrap_or(Quantity::ZERO)
                    .to_string()
            };
            let used = json::at(status, &["used", name]);
            let text = format!("{name}: {}/{}", shown(used), shown(hard));
            if name.starts_with("limits.") {
                limits.push(text);
            } else {
                requests.push(text);
            }
        }
        vec![
            object.name().into(),
            requests.join(", ").into(),
            limits.join(", ").into(),
            print::age_of(object, now),
        ]
    }

    /// Upstream warns of a new one alone.
    fn warnings_on_update(&self, _new: &Object, _old: &Object) -> Vec<String> {
        Vec::new()
    }

    /// Requests above the limits can never be used.
    fn warnings(&self, object: &Object) -> Vec<String> {
        let hard = object.get(&["spec", "hard"]).unwrap_or(&Value::Null);
        let found = |name: &str| Quantity::from_value(json::some(hard, name)?).ok();
        let mut all = Vec::new();
        for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
            let full = format!("requests.{name}");
            let bare = matches!(name, "cpu" | "memory");
            let request = match found(&full) {
                Some(request) => Some((full.as_str(), request)),
                None => found(name).filter(|_| bare).map(|request| (name, request)),
            };
            let limit_name = format!("limits.{name}");
            if let (Some((request_name, request)), Some(limit)) = (request, found(&limit_name))
                && request > limit
            {
                all.push(format!(
                    "ResourceQuota {request_name} ({request}) should be less than {limit_name} \
                     ({limit})"
                ));
            }
        }
        all
    }
}

/// The path of a list.
fn list_path(list: [&str; 2]) -> Path {
    Path::root(list[0]).child(list[1])
}

#[cfg(test)]
mod tests;
