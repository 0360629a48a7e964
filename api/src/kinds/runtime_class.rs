//! Runtime classes: names for the container runtimes of nodes.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::cluster(
        "node.k8s.io",
        "v1",
        Names {
            kind: "RuntimeClass",
            plural: "runtimeclasses",
            singular: "runtimeclass",
            schema: "io.k8s.api.node.v1.RuntimeClass",
        },
        &Plain,
    )
};
