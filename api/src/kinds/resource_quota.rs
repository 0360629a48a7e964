//! Resource quotas: how much a namespace may use in all.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["quota"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ResourceQuota",
            plural: "resourcequotas",
            singular: "resourcequota",
            schema: "io.k8s.api.core.v1.ResourceQuota",
        },
        &Plain,
    )
};
