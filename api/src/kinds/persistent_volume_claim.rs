//! Persistent volume claims: what a user asks of storage.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["pvc"],
    subresources: &[row::STATUS],
    selectable_fields: &["name"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "PersistentVolumeClaim",
            plural: "persistentvolumeclaims",
            singular: "persistentvolumeclaim",
            schema: "io.k8s.api.core.v1.PersistentVolumeClaim",
        },
        &Plain,
    )
};
