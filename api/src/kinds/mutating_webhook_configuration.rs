//! Webhooks that change what is written.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        "admissionregistration.k8s.io",
        "v1",
        Names {
            kind: "MutatingWebhookConfiguration",
            plural: "mutatingwebhookconfigurations",
            singular: "mutatingwebhookconfiguration",
            schema: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        },
        &Plain,
    )
};
