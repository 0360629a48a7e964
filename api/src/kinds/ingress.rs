//! Ingresses: HTTP routes from outside to services.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["ing"],
    subresources: &[row::STATUS],
    ..row::namespaced(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "Ingress",
            plural: "ingresses",
            singular: "ingress",
            schema: "io.k8s.api.networking.v1.Ingress",
        },
        &Plain,
    )
};
