//! Service CIDRs: the networks that Services get their addresses from.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "ServiceCIDR",
            plural: "servicecidrs",
            singular: "servicecidr",
            schema: "io.k8s.api.networking.v1.ServiceCIDR",
        },
        &Plain,
    )
};
