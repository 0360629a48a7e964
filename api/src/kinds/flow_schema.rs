//! Flow schemas: which requests wait in which priority level.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        Names {
            kind: "FlowSchema",
            plural: "flowschemas",
            singular: "flowschema",
            schema: "io.k8s.api.flowcontrol.v1.FlowSchema",
        },
        &Plain,
    )
};
