//! CSI drivers: what the cluster has to know of a storage driver.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "CSIDriver",
            plural: "csidrivers",
            singular: "csidriver",
            schema: "io.k8s.api.storage.v1.CSIDriver",
        },
        &Plain,
    )
};
