//! Custom resources: kinds that users bring, rows of the catalogue that are made at run time.
//!
//! A row of theirs is what any row is; its rules look up what the definition says now. Pure: who
//! reads definitions, and when, is not known here. `docs/custom-resources.md` says how it fits.

mod admit; // What becomes of a document on its way in and out.
mod columns; // What `kubectl get` shows.
mod conversion; // By a webhook.
mod expressions; // Rules of schemas.
mod family; // How objects merge.
mod json_path; // Paths of columns.
mod kinds; // The table of all kinds.
mod naming; // Which names are whose.
mod order; // The order of versions.
mod rows; // Rows of the catalogue.
mod rules; // The rules of a row.
mod version; // One version, compiled.

pub use conversion::Conversion;
pub use family::Family;
pub use kinds::{Kinds, Served};
pub use naming::settled;
pub use rows::{Rows, TooMany};
pub use version::{SCALE_STEPS_MAX, ScalePath, ScalePaths, Version, steps};

use crate::object::Object;
use serde_json::{Value, json};

pub const GROUP: &str = "apiextensions.k8s.io";
pub const PLURAL: &str = "customresourcedefinitions";
/// Holds a definition until all its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A condition of a definition.
pub fn condition<'a>(definition: &'a Object, kind: &str) -> Option<&'a Value> {
    let conditions = definition.list(&["status", "conditions"]);
    conditions.iter().find(|one| one["type"] == kind)
}

pub fn condition_is_true(definition: &Object, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|one| one["status"] == "True")
}

/// Sets a condition to its status, reason and message. It keeps its time as long as its status.
pub fn set_condition(definition: &mut Object, kind: &str, told: [&str; 3], now: &str) {
    let [status, reason, message] = told;
    let mut conditions = definition.list(&["status", "conditions"]).to_vec();
    let next = |since: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        })
    };
    match conditions.iter_mut().find(|one| one["type"] == kind) {
        None => conditions.push(next(now)),
        Some(own) => {
            let since = own["lastTransitionTime"].as_str().unwrap_or(now).to_owned();
            let is_same = own["status"] == status;
            *own = next(if is_same { &since } else { now });
        }
    }
    definition.set(&["status", "conditions"], conditions.into());
}

/// What the first deletion of a definition does before anything else: it waits for its objects.
pub fn begin_deletion(definition: &mut Object, now: &str) {
    let mut finalizers = definition.list(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == CLEANUP) {
        finalizers.push(CLEANUP.into());
        definition.set(&["metadata", "finalizers"], finalizers.into());
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                   begin soon";
    let told = ["True", "InstanceDeletionPending", message];
    set_condition(definition, "Terminating", told, now);
}

/// A built-in kind or one of these that is to be taken nothing new of.
pub fn is_ending(resource: &crate::resource::Resource) -> bool {
    let version = resource.rules.custom();
    version.is_some_and(|version| version.is_terminating)
}
