//! Stateful sets: pods with names and volumes of their own.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["sts"],
    categories: &["all"],
    subresources: &[row::SCALE, row::STATUS],
    ..row::namespaced(
        "apps",
        "v1",
        Names {
            kind: "StatefulSet",
            plural: "statefulsets",
            singular: "statefulset",
            schema: "io.k8s.api.apps.v1.StatefulSet",
        },
        &Plain,
    )
};
