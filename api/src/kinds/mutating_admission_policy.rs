//! Policies that change what is written, by expressions.

mod validate;

use crate::field::ErrorList;
use crate::kinds::admission_registration::{self, GROUP, policy};
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "MutatingAdmissionPolicy",
            plural: "mutatingadmissionpolicies",
            singular: "mutatingadmissionpolicy",
            schema: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy",
        },
        &MutatingAdmissionPolicy,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Mutations", "integer", "How many changes the policy makes."),
    column(
        "ParamKind",
        "string",
        "The kind that its parameters are of.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct MutatingAdmissionPolicy;

impl Rules for MutatingAdmissionPolicy {
    fn default(&self, object: &mut Object) {
        policy::default(object);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::spec(object)
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        validate::spec(new)
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
            object.list(&["spec", "mutations"]).len().into(),
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
