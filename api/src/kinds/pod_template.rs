//! Pod templates: a description of pods that other objects may copy.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "PodTemplate",
            plural: "podtemplates",
            singular: "podtemplate",
            schema: "io.k8s.api.core.v1.PodTemplate",
        },
        &Plain,
    )
};
