//! Volume attributes classes: parameters of volumes that may change while they live.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["vac"],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "VolumeAttributesClass",
            plural: "volumeattributesclasses",
            singular: "volumeattributesclass",
            schema: "io.k8s.api.storage.v1.VolumeAttributesClass",
        },
        &Plain,
    )
};
