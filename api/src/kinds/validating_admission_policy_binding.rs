//! Where a policy that judges applies.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        "admissionregistration.k8s.io",
        "v1",
        Names {
            kind: "ValidatingAdmissionPolicyBinding",
            plural: "validatingadmissionpolicybindings",
            singular: "validatingadmissionpolicybinding",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        },
        &Plain,
    )
};
