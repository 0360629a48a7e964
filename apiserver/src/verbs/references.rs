//! What a write refers to, and whether its author has a right to that.
//!
//! Where upstream's registry asks its authorizer, or looks at another object, beside the rules of
//! the kind: parameters of admission policies, admin access to devices, and who says what in the
//! status of a claim. Only these kinds pay for it. A refusal is an error of a field, in its place
//! among those of the rules.

mod claims; // Devices: who may have them beside others, and who may say who has them.
mod params; // Parameters of admission policies: whoever names them may read them.

use super::asked::Asked;
use crate::Api;
use coracle_api::field::ErrorList;
use coracle_api::object::Object;
use coracle_api::resource::Part;

/// A write that the rules have looked at.
struct Referring<'a> {
    api: &'a Api,
    asked: &'a Asked<'a>,
    new: &'a Object,
    old: Option<&'a Object>,
}

/// What is wrong with a write in all. `of_metadata` and `of_rules` are what was found before.
pub fn validate(
    api: &Api,
    asked: &Asked<'_>,
    new: &Object,
    old: Option<&Object>,
    of_metadata: ErrorList,
    of_rules: ErrorList,
) -> ErrorList {
    let write = Referring {
        api,
        asked,
        new,
        old,
    };
    let mut errors = of_metadata;
    let (resource, part) = (asked.resource, asked.part());
    match (resource.group, resource.plural, part) {
        ("resource.k8s.io", "resourceclaims", Part::Status) => {
            errors.extend(claims::check_status(&write));
        }
        ("resource.k8s.io", "resourceclaims", Part::Main) => {
            errors.extend(claims::check_wish(&write, &["spec", "devices", "requests"]));
        }
        ("resource.k8s.io", "resourceclaimtemplates", Part::Main) => {
            let requests = &["spec", "spec", "devices", "requests"];
            errors.extend(claims::check_wish(&write, requests));
        }
        _ => {}
    }
    errors.extend(of_rules);
    // What is not well-formed names nothing yet.
    if errors.is_empty() && resource.group == params::GROUP && part == Part::Main {
        errors.extend(params::check(&write));
    }
    errors
}
