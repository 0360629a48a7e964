//! Jobs: pods that run to their end.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["all"],
    subresources: &[row::STATUS],
    selectable_fields: &["status.successful"],
    ..row::namespaced(
        "batch",
        "v1",
        Names {
            kind: "Job",
            plural: "jobs",
            singular: "job",
            schema: "io.k8s.api.batch.v1.Job",
        },
        &Plain,
    )
};
