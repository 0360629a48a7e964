//! Where a policy that judges applies.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::admission_registration::{self, GROUP, binding};
use crate::kinds::checks;
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
            kind: "ValidatingAdmissionPolicyBinding",
            plural: "validatingadmissionpolicybindings",
            singular: "validatingadmissionpolicybinding",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        },
        &ValidatingAdmissionPolicyBinding,
    )
};

#[derive(Debug)]
struct ValidatingAdmissionPolicyBinding;

impl Rules for ValidatingAdmissionPolicyBinding {
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
        errors.extend(actions(object.list(&["spec", "validationActions"])));
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

/// What happens when the policy is not satisfied.
fn actions(actions: &[Value]) -> ErrorList {
    let path = Path::root("spec").child("validationActions");
    let mut errors = ErrorList::new();
    for (index, action) in actions.iter().enumerate() {
        let (path, text) = (path.index(index), action.as_str().unwrap_or(""));
        checks::one_of(&mut errors, text, &["Audit", "Deny", "Warn"], &path);
        if actions[..index].contains(action) {
            errors.push(FieldError::duplicate(&path, text));
        }
    }
    let has = |wanted: &str| actions.iter().any(|action| action == wanted);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(&path, actions, detail));
    }
    if actions.is_empty() {
        let detail = "at least one validation action is required";
        errors.push(FieldError::required(&path, detail));
    }
    errors
}

#[cfg(test)]
mod tests;
