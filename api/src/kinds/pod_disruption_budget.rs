//! Pod disruption budgets: how many pods may be evicted at a time.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["pdb"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "policy",
        "v1",
        Names {
            kind: "PodDisruptionBudget",
            plural: "poddisruptionbudgets",
            singular: "poddisruptionbudget",
            schema: "io.k8s.api.policy.v1.PodDisruptionBudget",
        },
        &Plain,
    )
};
