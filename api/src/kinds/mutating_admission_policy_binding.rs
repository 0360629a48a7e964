//! Where a policy that changes applies.

use crate::field::{ErrorList, Path};
use crate::kinds::admission_registration::{self, GROUP, binding, rules};
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "MutatingAdmissionPolicyBinding",
            plural: "mutatingadmissionpolicybindings",
            singular: "mutatingadmissionpolicybinding",
            schema: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding",
        },
        &MutatingAdmissionPolicyBinding,
    )
};

#[derive(Debug)]
struct MutatingAdmissionPolicyBinding;

impl Rules for MutatingAdmissionPolicyBinding {
    fn default(&self, object: &mut Object) {
        binding::default(object);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = binding::validate(object);
        if let Some(resources) = object.get(&["spec", "matchResources"]) {
            let path = Path::root("spec").child("matchResources");
            errors.extend(rules::changing_operations(resources, &path));
        }
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        binding::COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        binding::cells(object, now)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        admission_registration::warnings(object)
    }
}
