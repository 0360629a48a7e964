//! Ingress classes: which controller implements an ingress.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    ..row::cluster(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "IngressClass",
            plural: "ingressclasses",
            singular: "ingressclass",
            schema: "io.k8s.api.networking.v1.IngressClass",
        },
        &Plain,
    )
};
