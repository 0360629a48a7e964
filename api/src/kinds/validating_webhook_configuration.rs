//! Webhooks that judge what is written.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    ..row::cluster(
        "admissionregistration.k8s.io",
        "v1",
        Names {
            kind: "ValidatingWebhookConfiguration",
            plural: "validatingwebhookconfigurations",
            singular: "validatingwebhookconfiguration",
            schema: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
        },
        &Plain,
    )
};
