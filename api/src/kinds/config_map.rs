//! ConfigMaps: plain data for pods.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["cm"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "ConfigMap",
            plural: "configmaps",
            singular: "configmap",
            schema: "io.k8s.api.core.v1.ConfigMap",
        },
        &Plain,
    )
};
