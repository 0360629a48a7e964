//! What objects use of a namespace's quota, and whether what is left is enough.
//!
//! Admission charges and the controller counts by these same rules. Pure: what a rule needs beside
//! the object comes as an argument.

mod check; // Whether a write fits, and what the quotas stand at after it.
mod claims; // What claims of devices use.
mod device_classes; // Extended resources that device classes stand behind.
mod evaluator; // One kind of object: what it uses, and which scopes it is in.
mod pods; // What pods use.
mod scope; // Which of the objects a quota is about.
mod services; // What Services use.
mod volume_claims; // What claims of volumes use.

pub use check::{Charge, Request, check};
pub use claims::{depends_on_classes, pod_served};
pub use device_classes::DeviceClasses;
pub use evaluator::{Evaluator, Surroundings, kinds_behind, kinds_maybe_behind};
pub use scope::Scope;

use crate::amounts::Amounts;
use crate::object::Object;
use serde_json::Value;

pub const GROUP: &str = "";
pub const PLURAL: &str = "resourcequotas";

/// A quota as far as usage is concerned.
#[derive(Clone, Debug)]
pub struct Quota {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// What is wished for.
    pub spec_hard: Amounts,
    /// What is in force.
    pub hard: Amounts,
    pub used: Amounts,
}

impl Quota {
    pub fn of(object: &Object) -> Self {
        let amounts = |path: &[&str]| Amounts::of(object.get(path).unwrap_or(&Value::Null));
        Self {
            name: object.name().to_owned(),
            scopes: Scope::all_of(object),
            spec_hard: amounts(&["spec", "hard"]),
            hard: amounts(&["status", "hard"]),
            used: amounts(&["status", "used"]),
        }
    }

    /// Whether an object is one that this quota is about.
    pub fn is_about(&self, evaluator: &Evaluator, object: &Object) -> bool {
        let mut scopes = self.scopes.iter();
        scopes.all(|scope| evaluator.is_in(scope, object))
    }
}

#[cfg(test)]
mod tests;
