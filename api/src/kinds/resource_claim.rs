//! Resource claims: the devices that pods ask for.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::namespaced(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "ResourceClaim",
            plural: "resourceclaims",
            singular: "resourceclaim",
            schema: "io.k8s.api.resource.v1.ResourceClaim",
        },
        &Plain,
    )
};
