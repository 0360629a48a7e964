//! Priority levels: how many requests are worked on at a time, and who waits.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        Names {
            kind: "PriorityLevelConfiguration",
            plural: "prioritylevelconfigurations",
            singular: "prioritylevelconfiguration",
            schema: "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
        },
        &Plain,
    )
};
