//! Resource claims: the devices that pods ask for. The wish never changes; what was allocated is
//! in the status, and changes only by being given back.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::devices::{claim, status};
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules, prepare_update_by_part};
use crate::{json, names, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::namespaced(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "ResourceClaim",
            plural: "resourceclaims",
            singular: "resourceclaim",
            schema: "io.k8s.api.resource.v1.ResourceClaim",
        },
        &ResourceClaim,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "State",
        "string",
        "Whether the claim is pending, allocated, reserved, deleted.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct ResourceClaim;

impl Rules for ResourceClaim {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        object.get_mut(&["spec"]).map(claim::default);
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        prepare_update_by_part(new, old, part);
        if part == Part::Status {
            let before = old.get(&["status"]).unwrap_or(&json::NULL);
            if let Some(now) = new.get_mut(&["status"]) {
                status::drop_deallocated(now, before);
            }
        }
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        claim::spec(spec, &Path::root("spec"))
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        let of = |field: &str| [new, old].map(|o| o.get(&[field]).unwrap_or(&json::NULL));
        let [spec, old_spec] = of("spec");
        if part == Part::Status {
            let requests = claim::Requests::of(json::get(spec, "devices"));
            let [now, before] = of("status");
            return status::update(now, before, new.is_deleting(), &requests);
        }
        if json::same(spec, old_spec) {
            return ErrorList::new();
        }
        let error = FieldError::invalid(&Path::root("spec"), spec.clone(), names::IMMUTABLE);
        vec![error.as_go("io.k8s.api.resource.v1.ResourceClaimSpec")]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            state(object).into(),
            print::age_of(object, now),
        ]
    }
}

fn state(object: &Object) -> String {
    let mut states = Vec::new();
    if object.is_deleting() {
        states.push("deleted");
    }
    let allocation = object.get(&["status", "allocation"]);
    if allocation.is_some_and(|allocation| !allocation.is_null()) {
        states.push("allocated");
        if !object.list(&["status", "reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !object.is_deleting() {
        states.push("pending");
    }
    states.join(",")
}

#[cfg(test)]
mod tests;
