//! CSI storage capacities: how much room a driver has in a segment of the topology.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::namespaced(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "CSIStorageCapacity",
            plural: "csistoragecapacities",
            singular: "csistoragecapacity",
            schema: "io.k8s.api.storage.v1.CSIStorageCapacity",
        },
        &Plain,
    )
};
