//! Network policies: what traffic pods may send and get.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["netpol"],
    ..row::namespaced(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "NetworkPolicy",
            plural: "networkpolicies",
            singular: "networkpolicy",
            schema: "io.k8s.api.networking.v1.NetworkPolicy",
        },
        &Plain,
    )
};
