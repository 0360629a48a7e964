//! Namespaces.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::{Resource, Subresource, SubresourceKind};

pub const ROW: Resource = Resource {
    short_names: &["ns"],
    verbs: &[
        "create", "delete", "get", "list", "patch", "update", "watch",
    ],
    subresources: &[
        Subresource {
            name: "finalize",
            kind: SubresourceKind::Part,
            body: None,
            verbs: &["update"],
        },
        row::STATUS,
    ],
    selectable_fields: &["status.phase"],
    ..row::cluster(
        "",
        "v1",
        Names {
            kind: "Namespace",
            plural: "namespaces",
            singular: "namespace",
            schema: "io.k8s.api.core.v1.Namespace",
        },
        &Plain,
    )
};
