//! CSI nodes: the storage drivers of a node.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "CSINode",
            plural: "csinodes",
            singular: "csinode",
            schema: "io.k8s.api.storage.v1.CSINode",
        },
        &Plain,
    )
};
