//! Persistent volumes: storage of the cluster, bound to one claim.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["pv"],
    subresources: &[row::STATUS],
    selectable_fields: &["name"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "PersistentVolume",
            plural: "persistentvolumes",
            singular: "persistentvolume",
            schema: "io.k8s.api.core.v1.PersistentVolume",
        },
        &Plain,
    )
};
