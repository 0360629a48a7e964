//! Storage classes: how volumes of a kind are made.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["sc"],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "StorageClass",
            plural: "storageclasses",
            singular: "storageclass",
            schema: "io.k8s.api.storage.v1.StorageClass",
        },
        &Plain,
    )
};
