//! Policies that judge what is written, by expressions.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        "admissionregistration.k8s.io",
        "v1",
        Names {
            kind: "ValidatingAdmissionPolicy",
            plural: "validatingadmissionpolicies",
            singular: "validatingadmissionpolicy",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
        },
        &Plain,
    )
};
