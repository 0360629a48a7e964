//! What is wrong with a pod spec.

use crate::field::{ErrorList, FieldError, Path};
use crate::names;
use crate::quantity::Quantity;
use serde_json::Value;

/// Each quantity of a resource list is well-formed, not negative, and whole where it counts
/// things.
pub fn quantities(list: &Value, path: impl Fn(&str) -> Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in list.as_object().into_iter().flatten() {
        let path = path(name);
        match Quantity::from_value(value) {
            Err(error) => {
                errors.push(FieldError::invalid(&path, value.clone(), error.to_string()));
            }
            Ok(quantity) => {
                if quantity.is_negative() {
                    let detail = names::MUST_NOT_BE_NEGATIVE;
                    errors.push(FieldError::invalid(&path, value.clone(), detail));
                }
                if counts_things(name) && !quantity.is_whole() {
                    let detail = "must be an integer";
                    errors.push(FieldError::invalid(&path, value.clone(), detail));
                }
            }
        }
    }
    errors
}

/// True for a resource that comes in whole pieces.
fn counts_things(name: &str) -> bool {
    matches!(
        name,
        "pods" | "services" | "replicationcontrollers" | "resourcequotas" | "secrets"
    ) || matches!(
        name,
        "configmaps" | "persistentvolumeclaims" | "services.nodeports"
    ) || name == "services.loadbalancers"
        || super::resources::is_extended(name)
}

/// A PodTemplateSpec.
pub fn template(template: &Value, _old: Option<&Value>, path: &Path) -> ErrorList {
    let metadata = crate::json::get(template, "metadata");
    let metadata_path = path.child("metadata");
    let mut errors =
        crate::meta_validate::labels(crate::json::get(metadata, "labels"), &path.child("labels"));
    errors.extend(crate::meta_validate::annotations(
        crate::json::get(metadata, "annotations"),
        &metadata_path.child("annotations"),
    ));
    errors
}
