//! API services: which server answers for a group version.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        "apiregistration.k8s.io",
        "v1",
        Names {
            kind: "APIService",
            plural: "apiservices",
            singular: "apiservice",
            schema: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        },
        &Plain,
    )
};
