//! Leases: heartbeats of nodes and locks of leaders.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Durability, Part, Resource, Rules};
use crate::{json, print};
use serde_json::Value;

/// Where the leases of nodes are: each comes again within seconds, so none is worth a sync.
const NODE_LEASES: &str = "kube-node-lease";

pub const ROW: Resource = row::namespaced(
    "coordination.k8s.io",
    "v1",
    Names {
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        schema: "io.k8s.api.coordination.v1.Lease",
    },
    &Lease,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Holder", "string", "Who holds the lease now."),
    row::AGE,
];

#[derive(Debug)]
struct Lease;

impl Rules for Lease {
    fn default(&self, _object: &mut Object) {}

    /// Coordinated leader election is not served: its fields are dropped.
    fn prepare_create(&self, object: &mut Object) {
        object.remove(&["spec", "strategy"]);
        object.remove(&["spec", "preferredHolder"]);
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _part: Part<'_>) {
        self.prepare_create(new);
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("spec");
        let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
        let mut errors = ErrorList::new();
        checks::positive_if_set(&mut errors, spec, "leaseDurationSeconds", &path);
        if let Some(transitions) = json::int(spec, "leaseTransitions")
            && transitions < 0
        {
            let path = path.child("leaseTransitions");
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path, transitions, detail));
        }
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    fn create_on_update(&self) -> bool {
        true
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
            object.str(&["spec", "holderIdentity"]).into(),
            print::age_of(object, now),
        ]
    }

    fn durability(&self, new: &Object, old: Option<&Object>, _part: Part<'_>) -> Durability {
        const RENEWED: [&str; 2] = ["spec", "renewTime"];
        let is_renewed = |old: &Object| old.get(&RENEWED) != new.get(&RENEWED);
        match old {
            _ if new.namespace() != NODE_LEASES => Durability::Synced,
            Some(old) if is_renewed(old) => Durability::Renewal,
            _ => Durability::Lazy,
        }
    }
}

#[cfg(test)]
mod tests;
