//! What the kinds of admission share: webhooks and policies, the rules of what they are asked
//! about, the expressions in them, and where a policy applies.
//!
//! Validation only: nothing is called and nothing is evaluated here.

pub mod binding; // Where a policy applies, and with which parameters.
pub mod expressions; // Expressions, each with the variables that it may name.
pub mod policy; // What policies that judge and policies that change have in common.
pub mod rules; // Which requests something is asked about.
pub mod type_check; // Expressions held against the kinds that they are about.
pub mod webhook; // Webhooks and how they are reached.

use crate::object::Object;

pub const GROUP: &str = "admissionregistration.k8s.io";

pub const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
pub const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];

/// Names with this end are for what a server reads from files at its start.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Of a name that is not for objects of the API.
pub fn warnings(object: &Object) -> Vec<String> {
    if !object.name().ends_with(STATIC_SUFFIX) {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: names ending with \"{STATIC_SUFFIX}\" are reserved for static \
         manifest-based configurations and cannot be managed via the API"
    )]
}
