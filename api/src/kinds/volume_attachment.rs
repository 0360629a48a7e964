//! Volume attachments: the wish to have a volume at a node.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "VolumeAttachment",
            plural: "volumeattachments",
            singular: "volumeattachment",
            schema: "io.k8s.api.storage.v1.VolumeAttachment",
        },
        &Plain,
    )
};
