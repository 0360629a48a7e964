//! Policies that judge what is written, by expressions.

mod validate;

use crate::field::ErrorList;
use crate::kinds::admission_registration::{self, GROUP, policy};
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "ValidatingAdmissionPolicy",
            plural: "validatingadmissionpolicies",
            singular: "validatingadmissionpolicy",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
        },
        &ValidatingAdmissionPolicy,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Validations", "integer", "How many rules the policy has."),
    column(
        "ParamKind",
        "string",
        "The kind that its parameters are of.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct ValidatingAdmissionPolicy;

impl Rules for ValidatingAdmissionPolicy {
    fn default(&self, object: &mut Object) {
        policy::default(object);
        json::default_in(object.root_mut(), "status", json!({}));
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object)
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => validate::status(new),
            Part::Main | Part::Other(_) => validate::spec(new),
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.list(&["spec", "validations"]).len().into(),
            policy::param_kind_cell(object),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        admission_registration::warnings(object)
    }
}

#[cfg(test)]
mod tests;
