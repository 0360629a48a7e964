//! Limit ranges: bounds and defaults of what pods and claims of a namespace ask for.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["limits"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "LimitRange",
            plural: "limitranges",
            singular: "limitrange",
            schema: "io.k8s.api.core.v1.LimitRange",
        },
        &Plain,
    )
};
