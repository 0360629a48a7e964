//! Device classes: names for selections of devices.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::cluster(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "DeviceClass",
            plural: "deviceclasses",
            singular: "deviceclass",
            schema: "io.k8s.api.resource.v1.DeviceClass",
        },
        &Plain,
    )
};
