//! Resource claim templates: each pod gets a claim of its own made from one.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::namespaced(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "ResourceClaimTemplate",
            plural: "resourceclaimtemplates",
            singular: "resourceclaimtemplate",
            schema: "io.k8s.api.resource.v1.ResourceClaimTemplate",
        },
        &Plain,
    )
};
