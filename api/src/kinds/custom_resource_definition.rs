//! Custom resource definitions: kinds that users bring.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        "apiextensions.k8s.io",
        "v1",
        Names {
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
            singular: "customresourcedefinition",
            schema: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        },
        &Plain,
    )
};
