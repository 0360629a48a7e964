//! Priority classes: names for the priorities of pods.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::Value;

/// Above this only the two classes of the system may be.
const USER_VALUE_MAX: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub const ROW: Resource = Resource {
    short_names: &["pc"],
    ..row::cluster(
        "scheduling.k8s.io",
        "v1",
        Names {
            kind: "PriorityClass",
            plural: "priorityclasses",
            singular: "priorityclass",
            schema: "io.k8s.api.scheduling.v1.PriorityClass",
        },
        &PriorityClass,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Value", "integer", "The priority of pods of this class."),
    column(
        "Global-Default",
        "boolean",
        "Whether pods without a class are of this one.",
    ),
    row::AGE,
    column(
        "PreemptionPolicy",
        "string",
        "Whether its pods may push out others.",
    ),
];

#[derive(Debug)]
struct PriorityClass;

impl Rules for PriorityClass {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "value", 0);
        json::default_in(
            object.root_mut(),
            "preemptionPolicy",
            "PreemptLowerPriority",
        );
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn raises_generation(&self, _new: &Object, _old: &Object) -> bool {
        false
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = ErrorList::new();
        let value = object.i64(&["value"]).unwrap_or(0);
        if object.name().starts_with(SYSTEM_PREFIX) {
            errors.extend(system_class(object, value));
        } else if value > USER_VALUE_MAX {
            let detail =
                format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
            errors.push(FieldError::forbidden(&Path::root("value"), detail));
        }
        let policy = object.str(&["preemptionPolicy"]);
        let policies = &["PreemptLowerPriority", "Never"];
        checks::required_one_of(
            &mut errors,
            policy,
            policies,
            &Path::root("preemptionPolicy"),
        );
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        if new.i64(&["value"]).unwrap_or(0) != old.i64(&["value"]).unwrap_or(0) {
            let detail = "may not be changed in an update.";
            errors.push(FieldError::forbidden(&Path::root("value"), detail));
        }
        let (new, old) = (new.to_value(), old.to_value());
        checks::immutable(
            &mut errors,
            &new,
            &old,
            "preemptionPolicy",
            &Path::default(),
        );
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.i64(&["value"]).unwrap_or(0).into(),
            object.bool(&["globalDefault"]).into(),
            print::age_of(object, now),
            object.str(&["preemptionPolicy"]).into(),
        ]
    }
}

fn system_class(object: &Object, value: i64) -> ErrorList {
    let name = object.name();
    let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    let error = match known {
        None => format!("{name} is not a known system priority class"),
        Some((_, known)) if *known != value => {
            format!("value of {name} PriorityClass must be {known}")
        }
        Some(_) if object.bool(&["globalDefault"]) => {
            format!("globalDefault of {name} PriorityClass must be false")
        }
        Some(_) => return ErrorList::new(),
    };
    let detail = format!(
        "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. \
         error: {error}"
    );
    vec![FieldError::forbidden(
        &Path::root("metadata").child("name"),
        detail,
    )]
}

#[cfg(test)]
mod tests;
