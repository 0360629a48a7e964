//! Resource slices: the devices that a driver offers.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    selectable_fields: &["spec.driver", "spec.nodeName"],
    ..row::cluster(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "ResourceSlice",
            plural: "resourceslices",
            singular: "resourceslice",
            schema: "io.k8s.api.resource.v1.ResourceSlice",
        },
        &Plain,
    )
};
