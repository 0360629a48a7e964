//! IP addresses: who has an address of a ServiceCIDR.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["ip"],
    ..row::cluster(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "IPAddress",
            plural: "ipaddresses",
            singular: "ipaddress",
            schema: "io.k8s.api.networking.v1.IPAddress",
        },
        &Plain,
    )
};
